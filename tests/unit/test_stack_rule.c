/*
 * Proves each line of the rule of recovery for a ref in a reftable.
 * test_stack_histories.c proves the rule as a whole.
 */
#include <string.h>

#include "daemon/store/tables/recovery/stack_rule.h"
#include "tests/lib/suite.h"

static struct refd_oid oid_of(unsigned value)
{
	struct refd_oid oid = { 0 };

	memset(oid.bytes, (int)value, 20);
	return oid;
}

/* A row that moves the ref from OLD to NEW (0: none), with its indices. */
static struct record_member row(unsigned old, uint64_t old_index, unsigned new,
    uint64_t update_index, uint64_t base_index)
{
	return (struct record_member){ .status = REFD_OK,
		.action = new != 0 ? RECORD_WRITE : RECORD_DELETE,
		.new_oid = oid_of(new),
		.had_old = old != 0,
		.old_oid = oid_of(old),
		.old_index = old_index,
		.update_index = update_index,
		.base_index = base_index };
}

static struct stack_found found(unsigned value, uint64_t index)
{
	return (struct stack_found){ .index = index,
		.exists = value != 0,
		.oid = oid_of(value) };
}

static enum stack_verdict of_two(struct record_member a, struct record_member b,
    struct stack_found x)
{
	const struct record_member *rows[] = { &a, &b };

	return stack_rule_apply(rows, 2, &x, 0);
}

static enum stack_verdict of_one(struct record_member m, struct stack_found x,
    uint64_t proved)
{
	const struct record_member *rows[] = { &m };

	return stack_rule_apply(rows, 1, &x, proved);
}

TEST(one_row)
{
	const struct record_member moved = row(1, 5, 2, 10, 9);
	const struct record_member made = row(0, 0, 2, 10, 9);
	const struct record_member gone = row(1, 5, 0, 10, 9);
	const struct record_member same = row(1, 5, 1, 5, 9);

	/* Ours; by an earlier recovery; lost; later, whatever the index. */
	ck_assert_int_eq(of_one(moved, found(2, 10), 0), STACK_STANDS);
	ck_assert_int_eq(of_one(moved, found(2, 12), 0), STACK_STANDS);
	ck_assert_int_eq(of_one(moved, found(2, 9), 0), STACK_STANDS);
	ck_assert_int_eq(of_one(moved, found(1, 5), 0), STACK_REDO);
	ck_assert_int_eq(of_one(moved, found(3, 10), 0), STACK_LATER);
	ck_assert_int_eq(of_one(moved, found(0, 11), 0), STACK_LATER);
	ck_assert_int_eq(of_one(moved, found(3, 5), 0), STACK_LATER);
	ck_assert_int_eq(of_one(moved, found(1, 4), 0), STACK_LATER);
	ck_assert_int_eq(of_one(moved, found(0, 0), 0), STACK_LATER);
	/* Our table is there: somebody repeated the old record. */
	ck_assert_int_eq(of_one(moved, found(1, 5), 9), STACK_REDO);
	ck_assert_int_eq(of_one(moved, found(1, 5), 10), STACK_LATER);

	ck_assert_int_eq(of_one(made, found(0, 0), 0), STACK_REDO);
	ck_assert_int_eq(of_one(made, found(0, 9), 0), STACK_REDO);
	ck_assert_int_eq(of_one(made, found(0, 10), 0), STACK_LATER);
	ck_assert_int_eq(of_one(made, found(0, 0), 9), STACK_REDO);
	ck_assert_int_eq(of_one(made, found(0, 0), 10), STACK_LATER);
	ck_assert_int_eq(of_one(made, found(1, 9), 0), STACK_LATER);

	ck_assert_int_eq(of_one(gone, found(1, 5), 0), STACK_REDO);
	ck_assert_int_eq(of_one(gone, found(0, 10), 0), STACK_STANDS);
	ck_assert_int_eq(of_one(gone, found(0, 0), 0), STACK_STANDS);
	ck_assert_int_eq(of_one(gone, found(3, 10), 0), STACK_LATER);

	ck_assert_int_eq(of_one(same, found(1, 5), 0), STACK_STANDS);
	ck_assert_int_eq(of_one(same, found(1, 4), 0), STACK_STANDS);
	ck_assert_int_eq(of_one(same, found(2, 10), 0), STACK_LATER);
}

/* A table with used indices came behind ours, or was there before. */
TEST(overlapping_tables)
{
	const struct record_member made = row(0, 7, 2, 10, 9);
	struct stack_found x = found(0, 7);

	x.earlier = 9;
	ck_assert_int_eq(of_one(made, x, 0), STACK_REDO);
	x.index = 8;
	ck_assert_int_eq(of_one(made, x, 0), STACK_LATER);
	x.earlier = 7;
	ck_assert_int_eq(of_one(made, x, 0), STACK_REDO);
}

TEST(two_rows)
{
	const struct record_member first = row(1, 5, 2, 10, 9);
	const struct record_member second = row(2, 10, 3, 12, 11);

	ck_assert_int_eq(of_two(first, second, found(2, 10)), STACK_REDO);
	ck_assert_int_eq(of_two(first, second, found(1, 5)), STACK_REDO);
	ck_assert_int_eq(of_two(first, second, found(4, 10)), STACK_LATER);
	ck_assert_int_eq(of_two(first, second, found(4, 12)), STACK_LATER);
	ck_assert_int_eq(of_two(first, second, found(3, 12)), STACK_STANDS);
}

/* The row of a symbolic ref has no target of the record before. */
TEST(symbolic_refs)
{
	struct record_member m = row(1, 5, 2, 10, 9);
	char target[] = "a";
	struct stack_found x = { .index = 10,
		.exists = true,
		.target = target };

	m.target = "a";
	ck_assert_int_eq(of_one(m, x, 0), STACK_STANDS);
	m.target = "b";
	ck_assert_int_eq(of_one(m, x, 0), STACK_LATER);
	ck_assert_int_eq(of_one(m, found(2, 10), 0), STACK_LATER);
	x.index = 5;
	ck_assert_int_eq(of_one(m, x, 0), STACK_REDO);
	m.had_old = false; /* it led to no ref */
	ck_assert_int_eq(of_one(m, x, 0), STACK_REDO);
	m.target = NULL;
	x.index = 10;
	ck_assert_int_eq(of_one(m, x, 0), STACK_LATER);
}
