/*
 * Proves that after a failed sync of the prepared file no node of a group
 * commits an update: a row of the group's log can't be taken back. The file is
 * packed-refs, or a table, its list, and their directory. The leader sends no
 * row that does the update, and a follower does not append the row. Both do so
 * at the next attempt.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/following/row_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/tables_rig.h"

/* The syncs of packed-refs.new, and of the table, the list and the
 * directory. */
#define FILES_SYNCS  1
#define TABLES_SYNCS 3

static int (*commit)(void *, struct journal_row *, size_t, bool);
static unsigned nr_writes; /* committed to the log */

/* The log of the group takes every row. A row has the LSN of the follower's
 * row, or none. */
static int count_writes(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	struct record rec;
	size_t i, k;

	for (i = 0; i < nr; i++) {
		ck_assert_int_eq(rows[i].kind, JOURNAL_SLICE);
		ck_assert_int_eq(record_decode(rows[i].body, rows[i].len, &rec),
		    0);
		for (k = 0; k < rec.nr_members; k++)
			nr_writes += rec.members[k].status == REFD_OK;
		record_done(&rec);
	}
	return commit(arg, rows, nr, flush);
}

/* The repository has been opened before. */
static void join(void)
{
	static const uint8_t group[16] = "a group";
	struct applier *ap = &w->store.pipeline->applier;

	wr_ok("x=1;y=1");
	journal_set_group(w->store.journal, group);
	commit = ap->commit;
	ap->commit = count_writes;
	ap->is_group = true;
	nr_writes = 0;
}

static void setup_files(void)
{
	w = world_new(memfs_new(), false);
	w->packed_least = 2;
	wr_start();
	join();
}

static void setup_tables(void)
{
	tbl_setup();
	join();
}

static void expect(bool tables, char value)
{
	ck_assert_int_eq(tables ? tbl_ref("a") : world_ref(w, "a"), value);
	ck_assert_int_eq(tables ? tbl_ref("b") : world_ref(w, "b"), value);
	ck_assert_uint_eq(nr_writes, value == '0' ? 0 : 2);
	wr_expect_locks("");
}

/* A failed sync of the directory, which is the last one, makes the file system
 * suspect. */
static bool goes_on(bool tables, int sync)
{
	return !tables || sync + 1 < TABLES_SYNCS;
}

/* ---- the leader ---- */

static void lead(bool tables, int sync)
{
	struct txn *txn;

	memfs_fail_call(w->fs, MEMFS_FSYNC, (unsigned long)sync, -EIO);
	txn = world_apply(w, "a=1:0;b=1:0", true);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_int_eq(txn->updates[0].status, REFD_IO);
	ck_assert_int_eq(txn->updates[1].status, REFD_IO);
	world_done(w, txn);
	expect(tables, '0');
	if (!goes_on(tables, sync))
		return;
	wr_ok("a=1:0;b=1:0");
	expect(tables, '1');
}

START_TEST(leader_with_files)
{
	lead(false, _i);
}
END_TEST

START_TEST(leader_with_tables)
{
	lead(true, _i);
}
END_TEST

/* ---- a follower ---- */

/* Tries to apply the row which creates a and b; false: must be tried again. */
static bool try_row(void)
{
	struct record_member members[] = {
		{ .index = 0, .name = "refs/heads/a" },
		{ .index = 1, .name = "refs/heads/b" },
	};
	struct record rec = { .committer = "A <a@example.org> 1700000000 +0000",
		.message = "test",
		.file_mode = 0644,
		.dir_mode = 0755,
		.nr_updates = 2,
		.object_format = world_format(),
		.atomic = true,
		.members = members,
		.nr_members = 2 };
	struct group_row row = { .is_final = true };
	uint8_t *body;
	struct row_txn rt;
	bool is_applied;
	size_t i;

	for (i = 0; i < 2; i++) {
		members[i].status = REFD_OK;
		members[i].answers = true;
		members[i].worktree = "";
		members[i].action = RECORD_WRITE;
		members[i].new_oid = world_oid('1');
	}
	body = record_encode(&rec, &row.record.len);
	row.record.data = body;
	ck_assert_int_eq(row_txn_init(&rt, &row, 1, WORLD_REPO, NULL), 0);
	rt.txn->repo = world_repo(w, WORLD_REPO);
	ck_assert_ptr_nonnull(rt.txn->repo);
	for (i = 0; i < 2; i++)
		rt.txn->updates[i].object = TXN_OBJECT_COMMIT;
	apply_batch(&w->store.pipeline->applier, rt.batch);
	/* The follower then counts the row as applied (follower.c). */
	is_applied = rt.batch->slices[0].lsn != 0;
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(rt.txn->updates[i].status == REFD_OK,
		    is_applied);
	repo_put(&w->store.repos, rt.txn->repo);
	rt.txn->repo = NULL;
	row_txn_done(&rt);
	free(body);
	return is_applied;
}

static void follow(bool tables, int sync)
{
	memfs_fail_call(w->fs, MEMFS_FSYNC, (unsigned long)sync, -EIO);
	ck_assert(!try_row());
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	expect(tables, '0');
	if (!goes_on(tables, sync))
		return;
	ck_assert(try_row());
	expect(tables, '1');
}

START_TEST(follower_with_files)
{
	follow(false, _i);
}
END_TEST

START_TEST(follower_with_tables)
{
	follow(true, _i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("apply group");
	TCase *tc = tcase_create("files");

	tcase_add_checked_fixture(tc, setup_files, wr_teardown);
	tcase_add_loop_test(tc, leader_with_files, 0, FILES_SYNCS);
	tcase_add_loop_test(tc, follower_with_files, 0, FILES_SYNCS);
	suite_add_tcase(suite, tc);
	tc = tcase_create("tables");
	tcase_add_checked_fixture(tc, setup_tables, tbl_teardown);
	tcase_add_loop_test(tc, leader_with_tables, 0, TABLES_SYNCS);
	tcase_add_loop_test(tc, follower_with_tables, 0, TABLES_SYNCS);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
