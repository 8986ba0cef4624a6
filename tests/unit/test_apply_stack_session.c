/*
 * Proves that a session in a repository with reftables holds names and no lock,
 * and that its commit sees the changes and the lock of another writer, and a
 * failed sync of another batch.
 */
#include <errno.h>
#include <fcntl.h>

#include "tests/lib/apply_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tables_rig.h"

static const char lock[] = WORLD_REPO "/reftable/tables.list.lock";

CASE(.setup = tbl_setup, .teardown = tbl_teardown);

TEST(a_session_holds_names)
{
	struct txn *txn, *other;

	OK("a=1");
	txn = world_session(w, "a=2:1;@HEAD=2;-gone", true);
	ck_assert_ptr_nonnull(txn->prepared);
	ck_assert_str_eq(txn->updates[1].final_name, "refs/heads/main");
	wr_expect_locks("");
	other = world_apply(w, "a=3", false);
	ck_assert_int_eq(other->updates[0].again, TXN_AGAIN_LOCKED);
	ck_assert_str_eq(other->updates[0].locked_path, "refs/heads/a");
	world_done(w, other);
	other = world_apply(w, "main=3;b=1", false);
	ck_assert_int_eq(other->updates[0].again, TXN_AGAIN_LOCKED);
	ck_assert_int_eq(other->updates[1].status, REFD_OK);
	world_done(w, other);
	tbl_git("c", '1');
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert_int_eq(txn->updates[1].status, REFD_OK);
	world_done(w, txn);
	ck_assert_int_eq(tbl_ref("a"), '2');
	ck_assert_int_eq(tbl_ref("main"), '2');
	ck_assert_int_eq(tbl_ref("c"), '1');
	OK("a=3:2");
}

TEST(an_aborted_session_leaves_nothing)
{
	struct txn *txn;

	OK("a=1");
	txn = world_session(w, "a=2;-a2;new/x=1", true);
	ck_assert_ptr_nonnull(txn->prepared);
	world_session_end(w, txn, false);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	world_done(w, txn);
	ck_assert_int_eq(tbl_ref("a"), '1');
	OK("a=3:1");
}

TEST(git_changes_the_ref_of_a_session)
{
	struct txn *txn;

	OK("a=1");
	txn = world_session(w, "a=2:1;b=1", true);
	tbl_git("a", '5');
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_STALE);
	ck_assert_int_eq(txn->updates[1].status, REFD_ABORTED);
	world_done(w, txn);
	ck_assert_int_eq(tbl_ref("a"), '5');
	ck_assert_int_eq(tbl_ref("b"), '0');
}

TEST(git_holds_the_lock_at_the_commit)
{
	struct txn *txn;

	OK("a=1");
	txn = world_session(w, "a=2:1;b=1", true);
	memfs_write(w->fs, lock, "");
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_LOCKED);
	ck_assert_int_eq(txn->updates[1].status, REFD_LOCKED);
	world_done(w, txn);
	wr_unlink(lock);
	OK("a=3:1");
}

static void unlock_list(struct memfs *fs, void *arg)
{
	(void)arg;
	SYS(memfs_other(fs), unlinkat, AT_FDCWD, lock);
}

TEST(git_unlocks_during_the_commit)
{
	struct txn *txn;

	OK("a=1");
	txn = world_session(w, "a=2:1;@HEAD=1", true);
	memfs_write(w->fs, lock, "");
	memfs_between(w->fs, 200, unlock_list, NULL);
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert_int_eq(txn->updates[1].status, REFD_OK);
	world_done(w, txn);
	ck_assert_int_eq(tbl_ref("a"), '2');
}

/* The commit has looked at the file system, and has no turn yet. The sync of a
 * table by git fails in a batch beside. The kernel tells nobody a second
 * time. */
static void sync_fails_beside(struct memfs *fs, void *arg)
{
	struct txn *txn;

	(void)arg;
	memfs_fail_call(fs, MEMFS_FSYNC, 0, -EIO);
	txn = world_apply(w, "b=1", false);
	ck_assert(memfs_was_hit(fs));
	memfs_fail_none(fs);
	ck_assert_int_eq(txn->updates[0].status, REFD_IO);
	world_done(w, txn);
}

/* The calls of session_end() before the turn: it looks at the repository three
 * times. */
#define LOOKS 3

TEST(a_sync_fails_before_the_turn_of_the_commit)
{
	struct txn *txn;

	OK("a=1");
	txn = world_session(w, "a=2:1", true);
	tbl_git("c", '1');
	memfs_between(w->fs, LOOKS, sync_fails_beside, NULL);
	world_session_end(w, txn, true);
	/* Not REFD_NOREPO: the failure came after the look. */
	ck_assert_int_eq(txn->updates[0].status, REFD_IO);
	world_done(w, txn);
	ck_assert_int_eq(tbl_ref("a"), '1');
}
