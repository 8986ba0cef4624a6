/*
 * Proves that a stack of reftables shows the newest record of each key, hides
 * deleted records, reads the list again while git merges tables, serves tables
 * with indices of tables before, and refuses a stack whose tables are missing
 * or do not fit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_merged.h"
#include "tests/lib/reftable_rig.h"
#include "tests/lib/suite.h"

static struct reftable_stack stack;
static char text[REFTABLE_FAULT_TEXT];

static int open_stack(void)
{
	return reftable_stack_open(rr_sys, rr_dir, REFD_FORMAT_SHA1, NULL,
	    &stack, &rr_fault);
}

static void refused(int error, const char *words)
{
	ck_assert_int_eq(open_stack(), error);
	ck_assert_uint_eq(stack.nr, 0);
	reftable_stack_fault_text(&rr_fault, error, text);
	ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

static void put_list(const char *list)
{
	rh_put(rr_sys, rr_dir, REFTABLE_LIST, list, strlen(list));
}

static void add_three(void)
{
	const struct reftable_record oldest[] = { rh_symref("HEAD", 1,
						      "refs/heads/main"),
		rh_ref("refs/heads/a", 1, 1), rh_ref("refs/heads/b", 1, 1),
		rh_ref("refs/heads/main", 1, 1),
		rh_log("refs/heads/a", 1, 0, 1, "a\n"),
		rh_log("refs/heads/main", 1, 0, 1, "m\n") };
	const struct reftable_record middle[] = { rh_deleted("refs/heads/a", 2),
		rh_ref("refs/heads/main", 2, 2),
		rh_log("refs/heads/main", 2, 1, 2, "m\n") };
	struct reftable_record newest[] = { rh_ref("refs/heads/a", 3, 3),
		rh_deleted("refs/heads/b", 3),
		rh_log("refs/heads/a", 3, 0, 3, "a\n"),
		rh_log("refs/heads/a", 1, 0, 0, "") };

	newest[3].is_deletion = true;
	rr_add(1, oldest, 6);
	rr_add(2, middle, 3);
	rr_add(3, newest, 4);
}

static int find(const char *name)
{
	static struct reftable_iterator it;
	int r, id;

	it.budget = rh_budget();
	r = reftable_stack_find(&stack, name, &it, &rr_fault);
	id = r > 0 ? it.cursor.record.ref.oid.bytes[0] : r;
	reftable_iterator_done(&it);
	return id;
}

CASE(.setup = rr_setup, .teardown = rr_teardown);

TEST(the_newest_wins)
{
	add_three();
	ck_assert_int_eq(open_stack(), 0);
	ck_assert_uint_eq(stack.nr, 3);
	ck_assert_str_eq(rr_list(&stack, REFTABLE_REFS, false),
	    "HEAD>refs/heads/main refs/heads/a=3 refs/heads/main=2 ");
	ck_assert_str_eq(rr_list(&stack, REFTABLE_REFS, true),
	    "HEAD>refs/heads/main refs/heads/a=3 refs/heads/b- "
	    "refs/heads/main=2 ");
	ck_assert_str_eq(rr_list(&stack, REFTABLE_LOGS, false),
	    "refs/heads/a@3:0,3 refs/heads/main@2:1,2 refs/heads/main@1:0,1 ");
	ck_assert_int_eq(find("refs/heads/a"), 3);
	ck_assert_int_eq(find("refs/heads/b"), 0);
	ck_assert_int_eq(find("refs/heads/main"), 2);
	ck_assert_int_eq(find("refs/heads/mai"), 0);
	ck_assert_int_eq(find("refs/heads/main2"), 0);
	ck_assert_int_eq(find(""), 0);
	reftable_stack_close(&stack);
}

/* A writer that counted on from an older list used index 2 again. As in git,
 * the place in the list decides, for refs and for entries with the same key. */
TEST(indices_that_overlap)
{
	const struct reftable_record late[] = { rh_ref("refs/heads/a", 2, 9),
		rh_log("refs/heads/a", 2, 3, 9, "late\n"),
		rh_log("refs/heads/main", 2, 2, 9, "late\n") };
	struct rh_bytes bytes = rh_table(REFD_FORMAT_SHA1, 2, 2, late, 3);
	struct reftable_table table;

	add_three();
	rh_add(rr_sys, rr_dir, &bytes, 2, 2, 7);
	rh_free(&bytes);
	ck_assert_int_eq(open_stack(), 0);
	ck_assert_uint_eq(stack.nr, 4);
	ck_assert_str_eq(rr_list(&stack, REFTABLE_REFS, false),
	    "HEAD>refs/heads/main refs/heads/a=9 refs/heads/main=2 ");
	ck_assert_str_eq(rr_list(&stack, REFTABLE_LOGS, false),
	    "refs/heads/a@3:0,3 refs/heads/a@2:3,9 refs/heads/main@2:2,9 "
	    "refs/heads/main@1:0,1 ");
	ck_assert_int_eq(find("refs/heads/a"), 9);
	ck_assert_uint_eq(reftable_stack_max_index(stack.tables, 4), 3);
	ck_assert_uint_eq(reftable_stack_max_index(stack.tables + 3, 1), 2);
	ck_assert_uint_eq(reftable_stack_min_index(stack.tables + 2, 2), 2);
	ck_assert_int_eq(rh_merge(&stack, 1, 4, &bytes, &rr_fault), 0);
	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_uint_eq(table.context.min_index, 2);
	ck_assert_uint_eq(table.max_index, 3);
	reftable_table_close(&table);
	rh_free(&bytes);
	reftable_stack_close(&stack);
}

TEST(iteration_from_a_name)
{
	const struct reftable_record *rec;
	struct reftable_merged *merged;

	add_three();
	ck_assert_int_eq(open_stack(), 0);
	ck_assert_int_eq(reftable_merged_open(&stack, REFTABLE_LOGS,
			     "refs/heads/b", false, rh_budget(), &merged,
			     &rr_fault),
	    0);
	ck_assert_int_eq(reftable_merged_next(merged, &rec, &rr_fault), 1);
	ck_assert_str_eq(rec->name, "refs/heads/main");
	ck_assert_uint_eq(rec->update_index, 2);
	ck_assert_int_eq(reftable_merged_next(merged, &rec, &rr_fault), 1);
	ck_assert_int_eq(reftable_merged_next(merged, &rec, &rr_fault), 0);
	reftable_merged_free(merged);
	reftable_stack_close(&stack);
}

/* A bound of the work. Every record counts with its key. */
TEST(a_limit)
{
	enum { NR = 2000 };
	struct reftable_record *records = calloc(NR, sizeof(*records));
	char(*names)[32] = calloc(NR, sizeof(*names));
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	struct reftable_budget budget;
	struct rh_bytes table;
	uint64_t limit;
	unsigned i;
	int r;

	for (i = 0; i < NR; i++) {
		snprintf(names[i], sizeof(names[i]), "refs/heads/%06u", i);
		records[i] = rh_ref(names[i], 1, 1);
	}
	table = rh_table(REFD_FORMAT_SHA1, 1, 1, records, NR);
	rh_add(rr_sys, rr_dir, &table, 1, 1, 1);
	ck_assert_int_eq(open_stack(), 0);
	for (limit = table.len; limit <= 4 * table.len; limit *= 4) {
		budget = REFTABLE_BUDGET(limit);
		ck_assert_int_eq(reftable_merged_open(&stack, REFTABLE_REFS, "",
				     false, &budget, &merged, &rr_fault),
		    0);
		for (i = 0, r = 1; r > 0; i++)
			r = reftable_merged_next(merged, &rec, &rr_fault);
		ck_assert_int_eq(r, limit == table.len ? -EFBIG : 0);
		ck_assert_uint_gt(i, 100);
		reftable_merged_free(merged);
		ck_assert_uint_eq(budget.memory, REFTABLE_MEMORY_MAX);
	}
	reftable_stack_close(&stack);
	rh_free(&table);
	free(names);
	free(records);
}

TEST(an_empty_stack)
{
	refused(-ENOENT, "tables.list: No such file");
	put_list("");
	ck_assert_int_eq(open_stack(), 0);
	ck_assert_uint_eq(stack.nr, 0);
	ck_assert_int_eq(find("HEAD"), 0);
	ck_assert_str_eq(rr_list(&stack, REFTABLE_REFS, true), "");
	reftable_stack_close(&stack);
}

TEST(wrong_lists)
{
	char list[3 * (REFTABLE_TABLES_MAX + 2)] = "";
	size_t i;

	put_list("../x.ref\n");
	refused(-EBADMSG, "tables.list: a line is no name");
	put_list("a/b\n");
	refused(-EBADMSG, "no name of a table");
	put_list("\n");
	refused(-EBADMSG, "no name of a table");
	/* refd copies the list, so no line may look like one of refd/id. */
	put_list("uuid x.ref\n");
	refused(-EBADMSG, "no name of a table");
	put_list("x.ref");
	refused(-EBADMSG, "cut off");
	rh_put(rr_sys, rr_dir, REFTABLE_LIST, "a\0b\n", 4);
	refused(-EBADMSG, "NUL");
	for (i = 0; i < REFTABLE_TABLES_MAX + 1; i++)
		memcpy(list + 2 * i, "x\n", 3);
	put_list(list);
	refused(-EFBIG, "500 tables");
	SYS(rr_sys, unlinkat, rr_dir, REFTABLE_LIST);
	SYS(rr_sys, mkdirat, rr_dir, REFTABLE_LIST, 0777);
	refused(-EBADMSG, "not a regular file");
}

TEST(tables_that_do_not_fit)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 2, 1);
	struct rh_bytes other = rh_table(REFD_FORMAT_SHA256, 9, 9, NULL, 0);

	rr_add(2, &rec, 1);
	put_list("0x000000000002-0x000000000002-00000002.ref\nmissing.ref\n");
	refused(-EBADMSG, "missing.ref: the table is missing");
	put_list("0x000000000002-0x000000000002-00000002.ref\n"
		 "0x000000000002-0x000000000002-00000002.ref\n");
	refused(-EBADMSG, "tables.list: a table is listed twice");
	put_list("");
	rh_add(rr_sys, rr_dir, &other, 9, 9, 1);
	refused(-EBADMSG, "00000001.ref: the ids have another object format");
	rh_free(&other);
}

/* ---- git merges tables meanwhile ---- */

static struct sys racing;
static unsigned nr_sleeps, until;

/* A writer replaces both tables before, and finishes the list at last. */
static void sleep_while_git_merges(const struct sys *sys, int64_t ns)
{
	char list[64];

	(void)sys;
	(void)ns;
	nr_sleeps++;
	snprintf(list, sizeof(list), "gone%u.ref\n", nr_sleeps);
	put_list(nr_sleeps < until ?
		list :
		"0x000000000001-0x000000000001-00000001.ref\n");
}

TEST(tables_that_vanish)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 1, 7);

	rr_add(1, &rec, 1);
	put_list("gone.ref\n");
	racing = *rr_sys;
	racing.sleep_ns = sleep_while_git_merges;
	until = 5;
	ck_assert_int_eq(reftable_stack_open(&racing, rr_dir, REFD_FORMAT_SHA1,
			     NULL, &stack, &rr_fault),
	    0);
	ck_assert_uint_eq(nr_sleeps, 5);
	/* A snapshot: nothing that happens later matters. */
	SYS(rr_sys, unlinkat, rr_dir,
	    "0x000000000001-0x000000000001-00000001.ref");
	put_list("");
	ck_assert_int_eq(find("refs/heads/a"), 7);
	reftable_stack_close(&stack);
	/* It ends, however often the list changes. */
	put_list("gone.ref\n");
	until = UINT32_MAX;
	ck_assert_int_eq(reftable_stack_open(&racing, rr_dir, REFD_FORMAT_SHA1,
			     NULL, &stack, &rr_fault),
	    -EBADMSG);
}
