/*
 * Proves that folding and merging keep every ref and every log entry, and keep
 * the stack short. Replaced tables and tombstones stay until syncs that began
 * later have ended. test_stack_beside.c does the same beside git.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/stack/stack_merge.h"
#include "daemon/store/tables/stack/stack_sweep.h"
#include "tests/lib/flush_watch.h"
#include "tests/lib/reftable_rig.h"
#include "tests/lib/stack_rig.h"
#include "tests/lib/suite.h"

static struct stack_update u;

static size_t nr_tables(void)
{
	struct stack_snapshot *snap;
	size_t nr;

	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	nr = snap->tables.nr;
	stack_snapshot_put(snap);
	return nr;
}

static void tidy(void)
{
	if (stack_tidy_begin(stk.stack))
		stack_tidy_end(stk.stack, 1, 1);
}

/* ---- folding ---- */

static int fold(const struct reftable_record *records, size_t nr)
{
	int r = stk_begin(&u), err;

	u.may_fold = true;
	if (r == 0)
		r = stk_table(&u, records, nr);
	if (r == 0)
		r = stk_publish(&u);
	err = stk_end(&u);
	return r < 0 ? r : err;
}

CASE(.setup = stk_setup, .teardown = stk_teardown, .seconds = 120);

TEST(the_stack_stays_short)
{
	struct reftable_record records[2];
	char name[32];
	unsigned i;

	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "refs/heads/%u", i);
		records[0] = rh_ref(name, 0, 1);
		records[1] = rh_log(name, 0, 0, 1, "m\n");
		ck_assert_int_eq(fold(records, 2), 0);
		ck_assert_uint_le(nr_tables(), 9);
		/* The replaced tables go with the next checkpoint. */
		if (i % 10 == 9) {
			tidy();
			ck_assert_uint_eq(stk_nr_files(), nr_tables() + 1);
		}
		ck_assert_uint_eq(stk_nr_staged(), 0);
	}
	ck_assert_ptr_nonnull(strstr(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/0=1 refs/heads/1=1 "));
	ck_assert_ptr_nonnull(
	    strstr(stk_list(REFTABLE_LOGS), "refs/heads/299@301:0,1 "));
	ck_assert_ptr_nonnull(
	    strstr(stk_list(REFTABLE_LOGS), "refs/heads/main@1:0,1 "));
}

/* Deletions hide records of earlier tables, and only of those. */
TEST(deletions)
{
	const struct reftable_record add[] = { rh_ref("refs/heads/a", 0, 2),
		rh_log("refs/heads/a", 0, 0, 2, "a\n") };
	const struct reftable_record del = rh_deleted("refs/heads/a", 0);
	const struct reftable_record other = rh_ref("refs/heads/b", 0, 3);
	struct stack_snapshot *snap;

	ck_assert_int_eq(fold(add, 2), 0);
	ck_assert_int_eq(fold(&del, 1), 0);
	ck_assert_str_eq(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/main=1 ");
	ck_assert_str_eq(stk_list(REFTABLE_LOGS), "refs/heads/main@1:0,1 ");
	ck_assert_int_eq(fold(&other, 1), 0);
	ck_assert_int_eq(fold(add, 2), 0);
	ck_assert_str_eq(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/a=2 refs/heads/b=3 "
	    "refs/heads/main=1 ");
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	ck_assert_uint_eq(snap->max_index, 5);
	stack_snapshot_put(snap);
}

static size_t nr_tombstones(void)
{
	struct reftable_stack stack;
	const char *at;
	size_t nr = 0;

	ck_assert_int_eq(reftable_stack_open(stk.other, stk.other_dir,
			     stk.format, NULL, &stack, &stk.fault),
	    0);
	at = rr_list(&stack, REFTABLE_REFS, true);
	while ((at = strstr(at, "- ")) != NULL) {
		at++;
		nr++;
	}
	reftable_stack_close(&stack);
	return nr;
}

/* After a power loss a tombstone tells that another program deleted the ref
 * after a row which is redone. */
TEST(tombstones_outlive_the_rows)
{
	const struct reftable_record add = rh_ref("refs/heads/a", 0, 2);
	const struct reftable_record del = rh_deleted("refs/heads/a", 3);
	const struct reftable_record other = rh_ref("refs/heads/b", 0, 3);

	ck_assert_int_eq(fold(&add, 1), 0);
	stk_git(3, &del, 1);
	ck_assert_int_eq(fold(&other, 1), 0);
	ck_assert_uint_eq(nr_tables(), 1);
	ck_assert_uint_eq(nr_tombstones(), 1);
	/* The rows are forgotten after the first of these syncs. */
	tidy();
	ck_assert_int_eq(fold(&other, 1), 0);
	ck_assert_uint_eq(nr_tombstones(), 1);
	tidy();
	ck_assert_int_eq(fold(&other, 1), 0);
	ck_assert_uint_eq(nr_tombstones(), 0);
}

/* JGit counted on from an older list. The folded table, and a table that git
 * merged, cover all indices. */
TEST(tables_with_used_indices, .times = 2)
{
	const struct reftable_record add = rh_ref("refs/heads/a", 0, 2);
	const struct reftable_record jgit[] = { rh_ref("refs/heads/a", 2, 3),
		rh_log("refs/heads/a", 2, 1, 3, "late\n") };
	const struct reftable_record other = rh_ref("refs/heads/b", 0, 3);
	struct stack_snapshot *snap;

	stack_spend_index(stk.stack, 8);
	ck_assert_int_eq(stk_write(&add, 1), 0);
	stk_git(2, jgit, 2);
	if (_i == 1)
		stk_git_merge(1, 3);
	ck_assert_int_eq(fold(&other, 1), 0);
	ck_assert_str_eq(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/a=3 refs/heads/b=3 "
	    "refs/heads/main=1 ");
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	ck_assert_uint_eq(snap->tables.nr, 1);
	ck_assert_uint_eq(snap->tables.tables[0].context.min_index, 1);
	ck_assert_uint_eq(snap->max_index, 10);
	stack_snapshot_put(snap);
}

/* Git merges a table which we want to fold. */
TEST(a_table_is_locked)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 2);
	struct stack_snapshot *snap;
	char lock[REFTABLE_TABLE_NAME_MAX + 8];

	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	snprintf(lock, sizeof(lock), "%s.lock", snap->tables.tables[0].name);
	rh_put(stk.other, stk.other_dir, lock, "", 0);
	stack_snapshot_put(snap);
	ck_assert_int_eq(stk_begin(&u), 0);
	u.may_fold = true;
	ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
	ck_assert_uint_eq(u.first_folded, 0);
	ck_assert_int_eq(stack_update_lock(&u), 0);
	ck_assert_int_eq(stack_base_check(&u), 0);
	ck_assert_uint_eq(u.nr_locked, 0);
	/* The new round does not fold. */
	ck_assert_int_eq(stack_update_begin(&u), 0);
	ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
	ck_assert_int_eq(stack_base_check(&u), 1);
	ck_assert_int_eq(stack_update_list(&u), 0);
	ck_assert_int_eq(stack_update_place(&u), 0);
	ck_assert_int_eq(stk_end(&u), 0);
	ck_assert_uint_eq(nr_tables(), 2);
}

TEST(replaced_tables_stay_for_a_power_loss)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 2);

	ck_assert_int_eq(fold(&rec, 1), 0);
	ck_assert_uint_eq(nr_tables(), 1);
	ck_assert_uint_eq(stk_nr_files(), 3);
	ck_assert(stack_tidy_begin(stk.stack));
	/* Replaced after the sync began: not yet. */
	ck_assert_int_eq(fold(&rec, 1), 0);
	ck_assert_uint_eq(stk_nr_files(), 4);
	stack_tidy_end(stk.stack, 1, 1);
	ck_assert_uint_eq(stk_nr_files(), 3);
	tidy();
	ck_assert_uint_eq(stk_nr_files(), 2);
	ck_assert(!stack_tidy_begin(stk.stack));
}

#define REPAIRED(n) "0x00000000000" #n "-0x00000000000" #n "-00000007.ref"

/* Of an earlier run, or of git. */
TEST(unlisted_tables)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 2);
	struct rh_bytes old = rh_table(stk.format, 1, 1, NULL, 0);
	struct rh_bytes ahead = rh_table(stk.format, 90, 90, NULL, 0);

	rh_put(stk.other, stk.other_dir, "0x1-0x1-old.ref", old.data, old.len);
	rh_put(stk.other, stk.other_dir, "ahead.ref", ahead.data, ahead.len);
	rh_put(stk.other, stk.other_dir, "empty.ref", "", 0);
	rh_put(stk.other, stk.other_dir, "other", old.data, old.len);
	/* A killed repair left the first. */
	rh_put(stk.other, stk.other_dir, REPAIRED(1), old.data, old.len - 9);
	rh_put(stk.other, stk.other_dir, REPAIRED(9), old.data, old.len - 9);
	ck_assert_int_eq(stk_write(&rec, 1), 0);
	ck_assert_uint_eq(stk_nr_files(), 9);
	tidy();
	ck_assert_uint_eq(stk_nr_files(), 7);
	rh_free(&old);
	rh_free(&ahead);
}

/* ---- merging ---- */

static int make_merge(void)
{
	memset(&u, 0, sizeof(u));
	ck_assert_int_eq(
	    token_init(&stk.token, stk.sys, stk.stage_fd, ++stk.batch), 0);
	stack_update_init(&u, stk.stack, stk.git_fd, &stk.token, 0);
	return stack_merge_make(&u);
}

static int merge(void)
{
	int r = make_merge(), err;

	if (r > 0)
		r = stack_merge_publish(&u, NULL, INT64_MIN, false);
	err = stk_end(&u);
	return r < 0 ? r : err;
}

TEST(merges)
{
	struct reftable_record rec;
	uint64_t i;
	char before[4096], logs[4096];

	for (i = 2; i < 30; i++) {
		rec = i % 3 == 0 ? rh_deleted("refs/heads/x", i) :
				   rh_ref("refs/heads/x", i, (uint8_t)i);
		stk_git(i, &rec, 1);
	}
	strcpy(before, stk_list(REFTABLE_REFS));
	strcpy(logs, stk_list(REFTABLE_LOGS));
	ck_assert_int_eq(merge(), 0);
	ck_assert_uint_le(nr_tables(), 3);
	ck_assert_str_eq(stk_list(REFTABLE_REFS), before);
	ck_assert_str_eq(stk_list(REFTABLE_LOGS), logs);
	ck_assert_uint_eq(stk_nr_staged(), 0);
	rec = rh_ref("refs/heads/y", 0, 1);
	ck_assert_int_eq(stk_write(&rec, 1), 0);
	ck_assert_ptr_nonnull(
	    strstr(stk_list(REFTABLE_REFS), "refs/heads/y=1 "));
}

/* The first batch looks for tables of earlier runs. It takes the table of a
 * merge, which no list names yet, for one of them. */
static void first_batch(void)
{
	const struct reftable_record rec = rh_ref("refs/heads/b", 0, 2);
	struct stk_records records = { &rec, 1 };
	struct stack_update batch;
	struct token token;

	ck_assert_int_eq(token_init(&token, stk.sys, stk.stage_fd, ++stk.batch),
	    0);
	stack_update_init(&batch, stk.stack, stk.git_fd, &token, 0);
	ck_assert_int_eq(stack_update_begin(&batch), 0);
	ck_assert_int_eq(stack_table_make(&batch, 1, stk_record, &records), 0);
	ck_assert_int_eq(stk_publish(&batch), 0);
	ck_assert_int_eq(stack_update_unlock(&batch), 0);
	ck_assert_int_eq(stack_update_end(&batch), 0);
	ck_assert_int_eq(token_done(&token), 0);
}

static bool is_there(const char *table)
{
	struct sys_stat st;

	return SYS(stk.other, lstatat, stk.other_dir, table, &st) == 0;
}

TEST(a_merged_table_stays_for_a_power_loss)
{
	const struct reftable_record recs[] = { rh_ref("refs/heads/a", 2, 2),
		rh_ref("refs/heads/d", 3, 2) };
	const struct reftable_record other = rh_ref("refs/heads/c", 0, 2);
	char table[REFTABLE_WRITER_NAME];

	stk_git(2, &recs[0], 1);
	stk_git(3, &recs[1], 1);
	ck_assert_int_eq(make_merge(), 1);
	strcpy(table, u.table);
	first_batch();
	ck_assert_int_eq(stack_merge_publish(&u, NULL, INT64_MIN, false), 0);
	ck_assert_int_eq(stk_end(&u), 0);
	stack_tidy_begin(stk.stack);
	/* Replaced after the sync began: not yet. */
	ck_assert_int_eq(fold(&other, 1), 0);
	ck_assert_uint_eq(nr_tables(), 1);
	stack_tidy_end(stk.stack, 1, 1);
	ck_assert(is_there(table));
	tidy();
	ck_assert(!is_there(table));
}

/* A merge from the first table on drops tombstones. Later another program puts
 * a table before, whose refs the tombstones hide. */
TEST(nothing_comes_before_a_merge)
{
	const struct reftable_record del = rh_deleted("refs/heads/main", 5);
	const struct reftable_record add = rh_ref("refs/heads/a", 6, 2);
	char *list;
	size_t len, first;
	unsigned i;

	stk_git(5, &del, 1);
	stk_git(6, &add, 1);
	ck_assert_int_eq(sys_read_file(stk.other, stk.other_dir, REFTABLE_LIST,
			     REFTABLE_LIST_MAX, &list, &len),
	    0);
	first = (size_t)(strchr(list, '\n') + 1 - list);
	rh_put(stk.other, stk.other_dir, REFTABLE_LIST, list + first,
	    len - first);
	for (i = 0; i < 2; i++) {
		stack_tidy_begin(stk.stack);
		stack_tidy_end(stk.stack, 1, 1);
	}
	ck_assert_int_eq(make_merge(), 1);
	ck_assert_uint_eq(u.end_folded, 2);
	rh_put(stk.other, stk.other_dir, REFTABLE_LIST, list, len);
	ck_assert_int_eq(stack_merge_publish(&u, NULL, INT64_MIN, false),
	    -EAGAIN);
	ck_assert_int_eq(stk_end(&u), 0);
	ck_assert_str_eq(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/a=2 ");
	free(list);
}

/* The rename of the list fails. If the list may name the merged table, its lock
 * and all files stay for recovery. Otherwise nothing stays. */
TEST(a_merge_fails_at_its_rename, .times = 3)
{
	const bool is_doubtful = _i > 0;
	struct reftable_record rec;
	char before[4096];
	uint64_t i;

	for (i = 2; i < 10; i++) {
		rec = rh_ref("refs/heads/x", i, (uint8_t)i);
		stk_git(i, &rec, 1);
	}
	strcpy(before, stk_list(REFTABLE_REFS));
	ck_assert_int_eq(make_merge(), 1);
	if (_i < 2)
		memfs_fail_call(stk.fs, MEMFS_RENAMEAT, 0,
		    is_doubtful ? -EIO : -ENOSPC);
	else
		memfs_fail_after(stk.fs, MEMFS_RENAMEAT, 0, -EIO);
	ck_assert_int_eq(stack_merge_publish(&u, NULL, INT64_MIN, false),
	    is_doubtful ? -EIO : -ENOSPC);
	ck_assert_int_eq(stack_update_end(&u), 0);
	ck_assert_int_eq(u.list.progress,
	    is_doubtful ? PROGRESS_DEFERRED : PROGRESS_RELEASED);
	ck_assert(memfs_exists(stk.fs, "/repo/reftable/tables.list.lock") ==
	    is_doubtful);
	ck_assert_str_eq(stk_list(REFTABLE_REFS), before);
	if (!is_doubtful)
		ck_assert_uint_eq(stk_nr_files(), nr_tables() + 1);
}

static void git_writes(uint64_t index)
{
	const struct reftable_record rec = rh_ref("refs/heads/y", index, 1);

	stk_git(index, &rec, 1);
}

/* Before the lock, a merge makes only its own table durable: the sync of the
 * directory would make a list by git durable whose content is in memory. Under
 * the lock, the foreign table and the list become durable first. */
TEST(a_merge_beside_unsynced_tables, .times = 2)
{
	const struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };
	const struct reftable_record rec = rh_ref("refs/heads/z", 4, 1);
	char want[300];

	git_writes(2);
	git_writes(3);
	ck_assert_int_eq(SYS(stk.other, syncfs, stk.other_dir), 0);
	strcpy(want, stk_list(REFTABLE_REFS));
	ck_assert_int_eq(make_merge(), 1);
	stk_git(4, &rec, 1);
	ck_assert_int_eq(stack_sync_table(&u), 0);
	if (_i == 1) {
		strcpy(want, stk_list(REFTABLE_REFS));
		ck_assert_int_eq(
		    stack_merge_publish(&u, NULL, INT64_MIN, false), 0);
	}
	ck_assert_int_eq(stk_end(&u), 0);
	stk_close();
	memfs_power_loss(stk.fs, &nothing);
	stk.other_dir = SYS(stk.other, openat, AT_FDCWD, "/repo/reftable",
	    O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_eq(stk_open(), 0);
	ck_assert_str_eq(stk_list(REFTABLE_REFS), want);
}

/* Git's large table of 12,000 refs is flushed without the lock. */
TEST(a_large_table_by_git)
{
	enum { NR = 12000 };
	struct flush_watch watch = { .fs = stk.fs,
		.locks = { "/repo/reftable/tables.list.lock" },
		.large_bytes = STACK_LARGE };
	struct reftable_record *records = calloc(NR, sizeof(*records));
	char(*names)[32] = calloc(NR, sizeof(*names));
	unsigned i;

	for (i = 0; i < NR; i++) {
		snprintf(names[i], sizeof(names[i]), "refs/heads/%06u", i);
		records[i] = rh_ref(names[i], 4, 1);
	}
	git_writes(2);
	git_writes(3);
	ck_assert_int_eq(make_merge(), 1);
	stk_git(4, records, NR);
	flush_watch_begin(&watch);
	ck_assert_int_eq(stack_merge_publish(&u, NULL, INT64_MIN, false), 0);
	ck_assert_uint_eq(watch.nr_large, 1);
	ck_assert_uint_eq(watch.nr_locked, 0);
	ck_assert_int_eq(stk_end(&u), 0);
	ck_assert_uint_le(nr_tables(), 3);
	free(names);
	free(records);
}

/* ---- merges that are not made ---- */

/* Appends a table whose only block is damaged. */
static void add_damaged(uint64_t index)
{
	const struct reftable_record rec = rh_ref("refs/heads/x", index, 1);
	struct rh_bytes table = rh_table(stk.format, index, index, &rec, 1);

	table.data[24 + 4] = 100; /* the first name has no name before */
	rh_add(stk.other, stk.other_dir, &table, index, index, 77);
	rh_free(&table);
}

/* A failed merge is not tried again with the same tables. */
TEST(a_failed_merge)
{
	add_damaged(2);
	git_writes(3);
	ck_assert(stack_merge_pays(stk.stack));
	ck_assert_int_eq(merge(), 0);
	ck_assert_uint_eq(nr_tables(), 3);
	ck_assert(!stack_merge_pays(stk.stack));
	/* Later tables are merged. */
	git_writes(4);
	ck_assert(!stack_merge_pays(stk.stack));
	git_writes(5);
	ck_assert(stack_merge_pays(stk.stack));
	ck_assert_int_eq(merge(), 0);
	ck_assert_uint_eq(nr_tables(), 4);
}

/* A table of more than 64 MiB: a hole before the footer. */
TEST(a_huge_table)
{
	const size_t hole = (size_t)65 * 1024 * 1024, footer = 68;
	const struct reftable_record rec = rh_ref("refs/heads/x", 2, 1);
	struct rh_bytes table = rh_table(stk.format, 2, 2, &rec, 1);
	struct rh_bytes huge = { .len = table.len + hole };

	huge.data = calloc(1, huge.len);
	memcpy(huge.data, table.data, table.len - footer);
	memcpy(huge.data + huge.len - footer, table.data + table.len - footer,
	    footer);
	rh_add(stk.other, stk.other_dir, &huge, 2, 2, 77);
	ck_assert_uint_eq(nr_tables(), 2);
	ck_assert(!stack_merge_pays(stk.stack));
	git_writes(3);
	git_writes(4);
	ck_assert_int_eq(merge(), 0);
	ck_assert_uint_eq(nr_tables(), 3);
	rh_free(&huge);
	rh_free(&table);
}
