/*
 * Proves the recovery of repositories with reftables under locks, with rows of
 * the other format, with damaged lists and tables, and after a failed sync.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/stack_txn_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

#define MAIN "refs/heads/main"
#define X    "refs/heads/x"

/* ---- locks ---- */

CASE(.setup = stx_setup, .teardown = wr_teardown, .seconds = 120);

TEST(a_foreign_lock_defers_everything, .times = 2)
{
	const struct record_member m[] = { stack_txn_member(0, "", MAIN, '2'),
		stack_txn_member(1, "wt", "HEAD", '2') };
	static const char *const locks[] = { STX_LIST ".lock",
		WORLD_REPO "/worktrees/wt/reftable/tables.list.lock" };

	ck_assert_int_eq(stack_txn_apply(&stx, m, 2), 0);
	stx_lose_power();
	wr_unlink(locks[0]);
	wr_unlink(locks[1]);
	memfs_write(w->fs, locks[_i], "");
	wr_start();
	ck_assert_uint_eq(w->deferred, 2);
	ck_assert_uint_eq(w->found[STORE_DEFERRED], 1);
	stx_expect(MAIN, '1');
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 2);
	ck_assert_uint_eq(w->nr_still, 2);
	wr_unlink(locks[_i]);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	stx_expect(MAIN, '2');
	ck_assert_int_eq(stack_txn_value(w, "wt", "HEAD", NULL), '2');
	stx_expect_rest();
}

/* Git died with the machine, and with the lock of one stack. */
static void die_with_lock(bool of_worktree)
{
	const struct record_member m[] = { stack_txn_member(0, "", MAIN, '2'),
		stack_txn_member(1, "wt", "HEAD", '2') };
	static const char *const locks[] = { STX_LIST ".lock",
		WORLD_REPO "/worktrees/wt/reftable/tables.list.lock" };

	ck_assert_int_eq(stack_txn_apply(&stx, m, 2), 0);
	stx_lose_power();
	wr_unlink(locks[0]);
	wr_unlink(locks[1]);
	memfs_write(w->fs, locks[of_worktree],
	    "0x000000000001-0x000000000002-a.ref\n");
	wr_power_loss(MEMFS_DATA_ALL, 1000);
	wr_know_boot();
}

static void expect_both(void)
{
	ck_assert_uint_eq(w->deferred, 0);
	stx_expect(MAIN, '2');
	ck_assert_int_eq(stack_txn_value(w, "wt", "HEAD", NULL), '2');
	stx_expect_rest();
}

TEST(a_dead_lock_goes, .times = 2)
{
	die_with_lock(_i == 1);
	wr_start();
	ck_assert_uint_eq(w->found[STORE_UNLOCKED], 1);
	expect_both();
}

/* Recovery is killed, or loses power again, at each change. The last outcome is
 * the kill. */
TEST(stopped_beside_a_dead_lock, .times = 2)
{
	unsigned long n;
	bool hit = true;
	unsigned data;

	for (n = 0; hit; n++)
		for (data = 0; data <= 5; data += (unsigned)sweep_step()) {
			wr_teardown();
			stx_setup();
			die_with_lock(_i == 1);
			if (data < 5)
				memfs_power_loss_at(w->fs, n);
			else
				memfs_crash_at(w->fs, n);
			world_start(w);
			hit = memfs_was_hit(w->fs);
			if (data < 5)
				wr_power_loss((enum memfs_data)data, -1);
			else
				stx_crash();
			wr_know_boot();
			wr_start();
			expect_both();
		}
	ck_assert_uint_gt(n, 10);
}

/* The lock survived, and its token did not. Git's lock has another mode. */
TEST(a_lock_without_its_token)
{
	const struct record_member m = stack_txn_member(0, "", MAIN, '2');

	stx.end = STACK_TXN_STAGED;
	ck_assert_int_eq(stack_txn_apply(&stx, &m, 1), -EAGAIN);
	memfs_write(w->fs, WORLD_REPO "/worktrees/wt/reftable/tables.list.lock",
	    "");
	/* The lock of a table, of a batch which merges tables. */
	ck_assert_int_eq(SYS(memfs_other(w->fs), linkat, AT_FDCWD,
			     STX_LIST ".lock", AT_FDCWD,
			     STACK_DIR "/a.ref.lock"),
	    0);
	scripted_sync(w);
	wr_unlink(WORLD_REPO "/refd/stage/0000010000000001.0");
	wr_power_loss_and_start(MEMFS_DATA_ALL, -1);
	wr_expect_locks(WORLD_REPO "/worktrees/wt/reftable/tables.list.lock\n");
	stx_expect(MAIN, '1');
}

/* A batch at work has the lock: nothing is taken away, and the retry waits. */
TEST(beside_a_batch)
{
	const struct record_member m = stack_txn_member(0, "", X, '2');

	stx_change(MAIN, '2');
	stx_lose_power_and_lock();
	memfs_write(w->fs, STX_LIST ".lock", "");
	wr_start();
	/* Admission tries before the first batch. */
	ck_assert_int_eq(world_retry(w), 0);
	wr_unlink(STX_LIST ".lock");
	stx.end = STACK_TXN_STAGED;
	ck_assert_int_eq(stack_txn_apply(&stx, &m, 1), -EAGAIN);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	wr_expect_locks(STX_LIST ".lock\n");
	stx_crash();
	wr_start();
	stx_expect(MAIN, '2');
	stx_expect(X, '1');
	stx_expect_rest();
}

/* ---- formats ---- */

/* The rows are of files, and the repository was migrated by hand. */
TEST(rows_of_files)
{
	world_free(w);
	w = world_new(memfs_new(), true);
	wr_start();
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_mkdirs(w->fs, STACK_DIR);
	memfs_write(w->fs, STX_LIST, "");
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_DEFERRED], 1);
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/heads/x"));
	wr_expect_file(STX_LIST, "");
}

TEST(rows_of_reftables)
{
	stx_change("refs/heads/new", '2');
	stx_lose_power();
	wr_rename(STACK_DIR, WORLD_REPO "/was");
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_DEFERRED], 1);
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/heads/new"));
	wr_rename(WORLD_REPO "/was", STACK_DIR);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	stx_expect("refs/heads/new", '2');
	/* Stubs are never written. */
	wr_expect_file(WORLD_REPO "/HEAD", "ref: refs/heads/main\n");
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/heads/new"));
	stx_expect_rest();
}

/* ---- damage ---- */

static char *first_table(void)
{
	static char path[300];
	char *list = memfs_read(w->fs, STX_LIST, NULL);

	*strchr(list, '\n') = '\0';
	strcpy(path, STACK_DIR "/");
	strcat(path, list);
	free(list);
	return path;
}

TEST(damage, .times = 6)
{
	char *path, *was, *list;
	size_t len;

	stx_change(MAIN, '2');
	stx_lose_power();
	list = memfs_read(w->fs, STX_LIST, NULL);
	path = _i < 3 ? STX_LIST : first_table();
	was = memfs_read(w->fs, path, &len);
	if (_i == 0 || _i == 3)
		wr_unlink(path);
	else if (_i == 1 || _i == 4)
		memfs_write(w->fs, path, "");
	else
		memfs_write(w->fs, path, "nonsense\n");
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_CORRUPT], 1);
	if (_i == 0)
		ck_assert(!memfs_exists(w->fs, STX_LIST));
	if (_i > 2)
		wr_expect_file(STX_LIST, list);
	ck_assert_int_eq(world_retry(w), -EBADMSG);
	memfs_write_bytes(w->fs, path, was, len);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	stx_expect(MAIN, '2');
	stx_expect_rest();
	free(was);
	free(list);
}

/* The lock of a crash stays: git would begin a new stack. */
TEST(damage_after_a_crash)
{
	const struct record_member m = stack_txn_member(0, "", MAIN, '2');

	stx.end = STACK_TXN_LOGGED;
	ck_assert_int_eq(stack_txn_apply(&stx, &m, 1), -EAGAIN);
	stx_crash();
	wr_rename(STX_LIST, WORLD_REPO "/list");
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	wr_expect_locks(STX_LIST ".lock\n");
	wr_rename(WORLD_REPO "/list", STX_LIST);
	ck_assert_int_eq(world_retry(w), 0);
	stx_expect(MAIN, '2');
	stx_expect_rest();
}

TEST(a_worktree_that_is_gone)
{
	const struct record_member m[] = { stack_txn_member(0, "", MAIN, '2'),
		stack_txn_member(1, "wt", "HEAD", '2') };

	ck_assert_int_eq(stack_txn_apply(&stx, m, 2), 0);
	stx_lose_power();
	wr_rename(WORLD_REPO "/worktrees/wt", "/srv/gone");
	wr_start();
	stx_expect(MAIN, '2');
	ck_assert_uint_eq(w->found[STORE_DROPPED], 1);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/worktrees/wt"));
}

/* ---- a failed sync ---- */

/* Contents in memory alone are not trusted. refd's own tables are on the disk;
 * git's table is not, and the stack is damaged. */
TEST(a_failed_sync, .times = 2)
{
	struct reftable_record git = rh_ref(X, 0, '5');

	stx_change(MAIN, '2');
	git.ref.oid = world_oid('5');
	if (_i == 1)
		stack_txn_git(w, false, &git, 1);
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_lt(world_tick(w), 0);
	memfs_fail_none(w->fs);
	stx_crash();
	wr_start();
	ck_assert_uint_eq(w->deferred, _i);
	ck_assert_uint_eq(w->found[STORE_CORRUPT], (unsigned)_i);
	ck_assert_uint_eq(w->found[STORE_REDONE], 0);
	if (_i == 0)
		stx_expect(MAIN, '2');
}
