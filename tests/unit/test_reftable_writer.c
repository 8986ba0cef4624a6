/*
 * Proves that the writer of reftables refuses wrong input, that a failed write
 * is reported, that merging is planned as git plans it, and that merged tables
 * keep each deletion which hides a record of an earlier table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_check.h"
#include "daemon/store/tables/format/reftable_merged.h"
#include "tests/lib/reftable_rig.h"
#include "tests/lib/suite.h"

static struct reftable_writer *writer;
static struct rh_bytes bytes;

static int add(struct reftable_record rec)
{
	return reftable_writer_add(writer, &rec);
}

CASE(.setup = rr_setup, .teardown = rr_teardown);

TEST(wrong_input)
{
	char long_name[REFTABLE_NAME_MAX + 2], message[REFTABLE_BLOCK_BYTES];

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	memset(message, 'm', sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	writer = reftable_writer_new(REFD_FORMAT_SHA1, 5, 6, rh_append, &bytes);
	ck_assert_int_eq(add(rh_ref("", 5, 1)), -EINVAL);
	ck_assert_int_eq(add(rh_ref(long_name, 5, 1)), -EINVAL);
	ck_assert_int_eq(add(rh_ref("b", 4, 1)), -EINVAL);
	ck_assert_int_eq(add(rh_ref("b", 7, 1)), -EINVAL);
	ck_assert_int_eq(add(rh_ref("b", 5, 1)), 0);
	ck_assert_int_eq(add(rh_ref("b", 6, 1)), -EINVAL);
	ck_assert_int_eq(add(rh_ref("a", 5, 1)), -EINVAL);
	ck_assert_int_eq(add(rh_log("b", 7, 0, 1, "")), -EINVAL);
	ck_assert_int_eq(add(rh_log("b", 5, 0, 1, "")), 0);
	ck_assert_int_eq(add(rh_ref("c", 5, 1)), -EINVAL);
	ck_assert_int_eq(add(rh_log("b", 6, 0, 1, "")), -EINVAL);
	/* Git replaces an entry of an earlier table. */
	ck_assert_int_eq(add(rh_log("b", 4, 0, 1, "")), 0);
	ck_assert_int_eq(add(rh_log("c", 5, 0, 1, message)), -E2BIG);
	reftable_writer_free(writer);
	rh_free(&bytes);
}

static unsigned writes_left;

static int fail_later(void *arg, const void *data, size_t len)
{
	return writes_left-- > 0 ? rh_append(arg, data, len) : -ENOSPC;
}

TEST(every_failed_write)
{
	struct reftable_record rec;
	unsigned nr, i;
	int r = -1;

	for (nr = 0; r != 0; nr++) {
		ck_assert_uint_lt(nr, 100);
		writes_left = nr;
		writer = reftable_writer_new(REFD_FORMAT_SHA1, 1, 1, fail_later,
		    &bytes);
		r = 0;
		for (i = 0; r == 0 && i < 600; i++)
			r = add(rh_ref(rr_name(i), 1, 1));
		rec = rh_log("x", 1, 0, 1, "m\n");
		if (r == 0)
			r = reftable_writer_add(writer, &rec);
		if (r == 0)
			r = reftable_writer_finish(writer);
		ck_assert(r == 0 || r == -ENOSPC);
		reftable_writer_free(writer);
		if (r != 0)
			rh_free(&bytes);
	}
	/* Blocks, padding, index, log, footer. */
	ck_assert_uint_gt(nr, 8);
	rh_free(&bytes);
}

/* Names that nearly fill a block leave no room for an index of blocks. */
TEST(very_long_names)
{
	static char name[4001];
	unsigned i;
	int r = 0;

	memset(name, 'x', sizeof(name) - 1);
	writer = reftable_writer_new(REFD_FORMAT_SHA1, 1, 1, rh_append, &bytes);
	for (i = 0; i < 9; i++) {
		name[0] = (char)('a' + i);
		ck_assert_int_eq(add(rh_ref(name, 1, 1)), 0);
	}
	r = reftable_writer_finish(writer);
	ck_assert_int_eq(r, -E2BIG);
	reftable_writer_free(writer);
	rh_free(&bytes);
}

/* ---- merging ---- */

#define PLAN(first_, end_, ...)                                                \
	do {                                                                   \
		const uint64_t sizes_[] = { __VA_ARGS__ };                     \
		size_t f_ = 0, e_ = 0;                                         \
		bool r_ = reftable_merge_plan(sizes_,                          \
		    sizeof(sizes_) / sizeof(*sizes_), &f_, &e_);               \
		ck_assert_int_eq(r_, (end_) > 0);                              \
		ck_assert_uint_eq(f_, first_);                                 \
		ck_assert_uint_eq(e_, end_);                                   \
	} while (0)

TEST(the_plan)
{
	size_t first, end;

	ck_assert(!reftable_merge_plan(NULL, 0, &first, &end));
	PLAN(0, 0, 64);
	PLAN(0, 0, 64, 32, 16, 8, 4, 2, 1);
	PLAN(0, 2, 1, 1);
	PLAN(0, 2, 63, 32);
	PLAN(1, 3, 512, 64, 33);
	/* The merged table is too large for the table before. */
	PLAN(0, 4, 64, 17, 16, 9);
	PLAN(2, 4, 512, 64, 17, 9, 4, 2, 1);
	PLAN(0, 2, 100, 200, 20, 10);
	PLAN(1, 5, 512, 64, 17, 16, 16, 2);
	PLAN(0, 3, 1, 2, UINT64_MAX);
}

static struct reftable_stack stack;

static const char *merge(size_t first, size_t end)
{
	static struct reftable_table table;
	static struct reftable_stack one;
	const char *list;

	ck_assert_int_eq(rh_merge(&stack, first, end, &bytes, &rr_fault), 0);
	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(reftable_check(&table, rh_budget(), &rr_fault), 0);
	ck_assert_uint_eq(table.context.min_index,
	    stack.tables[first].context.min_index);
	ck_assert_uint_eq(table.max_index, stack.tables[end - 1].max_index);
	one = (struct reftable_stack){ .tables = &table, .nr = 1 };
	list = rr_list(&one, REFTABLE_REFS, true);
	reftable_table_close(&table);
	rh_free(&bytes);
	return list;
}

TEST(merged_deletions)
{
	const struct reftable_record a[] = { rh_ref("a", 1, 1),
		rh_ref("b", 1, 1) };
	const struct reftable_record b[] = { rh_deleted("a", 2),
		rh_ref("c", 2, 2) };
	const struct reftable_record c[] = { rh_deleted("c", 3),
		rh_symref("d", 3, "b") };

	rr_add(1, a, 2);
	rr_add(2, b, 2);
	rr_add(3, c, 2);
	ck_assert_int_eq(reftable_stack_open(rr_sys, rr_dir, REFD_FORMAT_SHA1,
			     NULL, &stack, &rr_fault),
	    0);
	ck_assert_str_eq(merge(0, 2), "b=1 c=2 ");
	ck_assert_str_eq(merge(1, 3), "a- c- d>b ");
	ck_assert_str_eq(merge(0, 3), "b=1 d>b ");
	ck_assert_str_eq(merge(2, 3), "c- d>b ");
	reftable_stack_close(&stack);
}

TEST(names_of_tables)
{
	char name[REFTABLE_WRITER_NAME];

	ck_assert_str_eq(reftable_writer_name(1, 0x123456, 0xab, name),
	    "0x000000000001-0x000000123456-000000ab.ref");
}
