/*
 * Proves that the refs of a look keep their values if memory is missing,
 * whichever allocation fails, while the table grows from nothing to many refs.
 * Both sides have values of their own, and limits: refs, and bytes of text.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/looking/seen_refs.h"
#include "tests/lib/failing_malloc.h"
#include "tests/lib/suite.h"

#define MANY 2000

/* -1: none fails. */
static long allocations, fail_at = -1;
static struct seen_refs *refs;
#if CAN_FAIL

static bool may_allocate(void)
{
	return fail_at < 0 || allocations++ != fail_at;
}

#endif

/* TARGET NULL: no value. */
static int set(enum seen_side side, const char *name, const char *target)
{
	const struct seen_ref ref = { .name = name, .target = target };

	return seen_refs_set(refs, side, &ref);
}

static const char *value(enum seen_side side, const char *name)
{
	struct seen_ref ref;

	if (!seen_refs_find(refs, side, name, &ref))
		return "";
	ck_assert_str_eq(ref.name, name);
	return ref.target;
}

static size_t count(enum seen_side side)
{
	struct seen_ref ref;
	size_t i, nr = 0;

	for (i = 0; i < seen_refs_nr(refs); i++)
		nr += seen_refs_get(refs, side, i, &ref);
	return nr;
}

static void setup(void)
{
	refs = seen_refs_new(MANY);
	ck_assert_ptr_nonnull(refs);
}

static void teardown(void)
{
	seen_refs_free(refs);
}

/* With each allocation failing once. */
static unsigned set_in_spite(enum seen_side side, const char *name,
    const char *target)
{
	const size_t nr = count(side);
	unsigned nr_failed = 0;

	for (;; nr_failed++) {
		allocations = 0;
		fail_at = nr_failed;
		if (set(side, name, target) == 0)
			break;
		fail_at = -1;
		ck_assert_uint_eq(count(side), nr);
		ck_assert_str_eq(value(side, name), "");
	}
	fail_at = -1;
	return nr_failed;
}

CASE(.setup = setup, .teardown = teardown);

TEST(memory_is_missing)
{
	unsigned i, nr_failed = 0;
	char name[20];

	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "refs/heads/%u", i);
		nr_failed += set_in_spite(SEEN_DISK, name, name + 11);
	}
	/* Three pieces grow from nothing. */
	ck_assert(!CAN_FAIL || nr_failed >= 6);
	ck_assert_uint_eq(count(SEEN_DISK), MANY);
	ck_assert_uint_eq(count(SEEN_KNOWN), 0);
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "refs/heads/%u", i);
		ck_assert_str_eq(value(SEEN_DISK, name), name + 11);
	}
}

TEST(sides_are_apart)
{
	const struct seen_ref unknown = { .name = "c", .is_unknown = true };

	ck_assert_int_eq(set(SEEN_KNOWN, "a", "1"), 0);
	ck_assert_int_eq(set(SEEN_DISK, "a", "2"), 0);
	ck_assert_int_eq(set(SEEN_DISK, "b", "3"), 0);
	ck_assert_int_eq(seen_refs_set(refs, SEEN_DISK, &unknown), 0);
	ck_assert_str_eq(value(SEEN_KNOWN, "a"), "1");
	ck_assert_str_eq(value(SEEN_KNOWN, "b"), "");
	seen_refs_know(refs);
	ck_assert_str_eq(value(SEEN_KNOWN, "a"), "2");
	ck_assert_str_eq(value(SEEN_KNOWN, "b"), "3");
	ck_assert_uint_eq(count(SEEN_KNOWN), 2);
	ck_assert_uint_eq(count(SEEN_DISK), 3);
	/* Without memory, too. */
	allocations = fail_at = 0;
	ck_assert_int_eq(set(SEEN_DISK, "b", NULL), 0);
	ck_assert_int_eq(set(SEEN_DISK, "x", NULL), 0);
	fail_at = -1;
	ck_assert_str_eq(value(SEEN_DISK, "b"), "");
	ck_assert_str_eq(value(SEEN_KNOWN, "b"), "3");
	seen_refs_know(refs);
	ck_assert_uint_eq(count(SEEN_KNOWN), 1);
}

TEST(limits)
{
	char name[20], target[1000];
	unsigned i;
	int r = 0;

	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "refs/heads/%u", i);
		ck_assert_int_eq(set(SEEN_DISK, name, "1"), 0);
	}
	ck_assert_int_eq(set(SEEN_DISK, "more", "1"), -EFBIG);
	ck_assert_int_eq(set(SEEN_DISK, name, "2"), 0);
	ck_assert_int_eq(set(SEEN_DISK, name, NULL), 0);
	ck_assert_int_eq(set(SEEN_DISK, "more", "1"), 0);
	memset(target, 'x', sizeof(target) - 1);
	target[sizeof(target) - 1] = '\0';
	for (i = 0; r == 0; i++)
		r = set(SEEN_DISK, "more", target);
	ck_assert_int_eq(r, -EFBIG);
	ck_assert_uint_le(i, MANY);
}
