/*
 * Proves what records say about a value that only packed-refs has, which git
 * may have read before refd replaced the value.
 */
#include <string.h>

#include "daemon/store/files/recovery/rule.h"
#include "tests/lib/suite.h"

static struct refd_oid oid_of(unsigned value)
{
	struct refd_oid oid = { 0 };

	memset(oid.bytes, (int)value, 20);
	return oid;
}

/* A record that moves the ref from OLD to NEW (0: none), about the value 1. */
static enum rule_packed said(struct record rec, unsigned old, unsigned new)
{
	const struct record_member m = { .status = REFD_OK,
		.action = new != 0 ? RECORD_WRITE : RECORD_DELETE,
		.new_oid = oid_of(new),
		.had_old = old != 0,
		.old_oid = oid_of(old) };
	const struct refd_oid value = oid_of(1);

	return rule_packed(&rec, &m, &value);
}

TEST(refd_alone)
{
	const struct record own = { .is_gated = false };

	ck_assert_int_eq(said(own, 1, 0), RULE_PACKED_REPLACED);
	ck_assert_int_eq(said(own, 1, 2), RULE_PACKED_REPLACED);
	ck_assert_int_eq(said(own, 2, 1), RULE_PACKED_MEANT);
	ck_assert_int_eq(said(own, 0, 1), RULE_PACKED_MEANT);
	/* Confirmed. */
	ck_assert_int_eq(said(own, 1, 1), RULE_PACKED_MEANT);
	ck_assert_int_eq(said(own, 0, 2), RULE_PACKED_NOTHING);
	ck_assert_int_eq(said(own, 2, 3), RULE_PACKED_NOTHING);
	ck_assert_int_eq(said(own, 2, 0), RULE_PACKED_NOTHING);
}

TEST(others)
{
	const struct record gated = { .is_gated = true };
	const struct record seen = { .is_gated = true, .is_seen = true };

	/* The value under the lock is old and new value of such records. */
	ck_assert_int_eq(said(gated, 1, 1), RULE_PACKED_MEANT);
	ck_assert_int_eq(said(gated, 2, 2), RULE_PACKED_MEANT);
	ck_assert_int_eq(said(gated, 0, 0), RULE_PACKED_MEANT);
	ck_assert_int_eq(said(seen, 1, 1), RULE_PACKED_NOTHING);
	ck_assert_int_eq(said(seen, 0, 0), RULE_PACKED_NOTHING);
}

TEST(other_members)
{
	const struct record own = { .is_gated = false };
	const struct refd_oid value = oid_of(1);
	struct record_member m = { .action = RECORD_LOG,
		.had_old = true,
		.old_oid = value };

	ck_assert_int_eq(rule_packed(&own, &m, &value), RULE_PACKED_NOTHING);
	m.action = RECORD_NOTHING;
	ck_assert_int_eq(rule_packed(&own, &m, &value), RULE_PACKED_NOTHING);
	/* A symbolic ref to a ref with the value. */
	m.action = RECORD_WRITE;
	m.new_oid = value;
	m.target = "refs/heads/a";
	ck_assert_int_eq(rule_packed(&own, &m, &value), RULE_PACKED_REPLACED);
}
