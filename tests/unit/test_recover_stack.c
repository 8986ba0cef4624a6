/*
 * Proves the recovery of repositories with reftables against other writers,
 * beyond the stories of tests/stories: indices, bases, lines, JGit, and two
 * power losses. test_recover_stack_locks.c has locks, formats and damage, and
 * test_recover_stack_sweep.c has failures at every point.
 */
#include <errno.h>

#include "tests/lib/lack_rig.h"
#include "tests/lib/stack_txn_rig.h"
#include "tests/lib/suite.h"

#define MAIN "refs/heads/main"
#define X    "refs/heads/x"

/* ---- a power loss ---- */

CASE(.setup = stx_setup, .teardown = wr_teardown, .seconds = 120);

TEST(the_lost_rename)
{
	stx_change(MAIN, '2');
	stx_lose_power();
	stx_expect(MAIN, '1');
	wr_start();
	stx_expect(MAIN, '2');
	/* No index is used twice. */
	ck_assert_uint_eq(stx_at, 3);
	stx_expect_log(MAIN, "1>2@2 0>1@1 ");
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	stx_expect_status(REFD_OK);
	stx_expect_rest();
}

/* The ref has the value of the lost row all the same, and the row has no log
 * line. So no table is made, and the stack stays below the index of the row. A
 * node of a group takes this for no older copy. */
TEST(the_lost_value_was_there_before)
{
	struct record_member m = stack_txn_member(0, "", MAIN, '1');

	m.log = false;
	lack_join();
	stx_change(X, '2');
	ck_assert_int_eq(stack_txn_apply(&stx, &m, 1), 0);
	stx_lose_power();
	wr_start();
	ck_assert_uint_eq(w->found[STORE_LOG_REPAIRED], 0);
	stx_expect(MAIN, '1');
	stx_expect(X, '2');
	stx_expect_rest();
}

/* Git deleted the ref, and merged the deletion away. The line of the other ref
 * proves that the table was there. */
TEST(git_merged_the_deletion, .times = 2)
{
	struct record_member m[] = { stack_txn_member(0, "", MAIN, '2'),
		stack_txn_member(1, "", "refs/heads/new", '2') };

	m[0].log = _i == 0;
	ck_assert_int_eq(stack_txn_apply(&stx, m, 2), 0);
	scripted_sync(w);
	stx_lose_power();
	stack_txn_git_ref(w, "refs/heads/new", '2', '0');
	stack_txn_git_merge(w);
	wr_start();
	stx_expect("refs/heads/new", _i == 0 ? '0' : '2');
	ck_assert_uint_eq(w->found[_i == 0 ? STORE_LEFT : STORE_REDONE], 1);
	stx_expect_rest();
}

/* Git's update is in memory alone. The base of a row is durable before the row,
 * so the row can be redone. */
TEST(a_base_by_git, .times = 2)
{
	const struct record_member m[] = { stack_txn_member(0, "", MAIN, '3'),
		stack_txn_member(1, "", X, '3') };
	struct reftable_record git = rh_ref(MAIN, 0, '2');

	/* The first update of a repository syncs the file system. */
	stx_change("refs/heads/first", '1');
	git.ref.oid = world_oid('2');
	stack_txn_git(w, false, &git, 1);
	stx.h.atomic = _i == 0;
	stx.end = STACK_TXN_LOGGED;
	ck_assert_int_eq(stack_txn_apply(&stx, m, 2), -EAGAIN);
	stx_lose_power();
	stx_expect(MAIN, '2');
	wr_start();
	stx_expect(MAIN, '3');
	stx_expect(X, '3');
	stx_expect_status(REFD_OK);
	stx_expect_rest();
}

/* JGit counted on from an older list. Its table has the index of a table of
 * refd, and stands behind it: another writer changed X later. Git counts on
 * from JGit's table, so its record does not look later either. */
TEST(jgit_wrote_later, .times = 2)
{
	stx_change(MAIN, '2');
	stx_change(X, '2');
	stack_txn_jgit_ref(w, 2, _i == 0 ? X : "refs/heads/j", '1', '5');
	if (_i == 1)
		stack_txn_jgit_ref(w, 2, X, '2', '5');
	scripted_sync(w);
	stx_lose_power();
	wr_start();
	stx_expect(MAIN, '2');
	stx_expect(X, '5');
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
	stx_expect_status(REFD_OK);
	stx_expect_rest();
}

/* The table of JGit was there before the update, whose rename is lost. */
TEST(jgit_wrote_before, .times = 2)
{
	stx_change(MAIN, '2');
	stack_txn_jgit_ref(w, 2, X, '1', '4');
	stx_change(X, '5');
	stx_lose_power_and_lock();
	stx_expect(X, '4');
	if (_i == 1)
		stack_txn_git_ref(w, MAIN, '2', '3');
	wr_start();
	stx_expect(X, '5');
	stx_expect(MAIN, _i == 1 ? '3' : '2');
	stx_expect_status(REFD_OK);
	stx_expect_rest();
}

/* After the first loss refd redoes with a new index; a later batch may not get
 * an index of a row. */
TEST(two_power_losses)
{
	stx_change(MAIN, '2');
	stx_lose_power();
	wr_start();
	stx_expect(MAIN, '2');
	ck_assert_uint_eq(stx_at, 3);
	stx_change(MAIN, '3');
	ck_assert_uint_eq(stx.members[0].update_index, 4);
	stx_lose_power();
	stx_expect(MAIN, '2');
	wr_start();
	stx_expect(MAIN, '3');
	ck_assert_uint_eq(stx_at, 5);
	stx_expect_log(MAIN, "2>3@4 1>2@2 0>1@1 ");
	stx_expect_rest();
}

/* ---- log lines ---- */

/* The log of a ref which git deleted and made again is another log. */
TEST(a_line_of_an_earlier_life)
{
	struct reftable_record git[] = { rh_deleted(X, 0),
		rh_log(X, 2, 0, 0, ""), rh_log(X, 1, 0, 0, "") };

	git[1].is_deletion = git[2].is_deletion = true;
	stx_change(X, '2');
	scripted_sync(w);
	stx_lose_power();
	stack_txn_git(w, true, git, 3);
	stack_txn_git_ref(w, X, '0', '5');
	stack_txn_git_merge(w);
	wr_start();
	stx_expect(X, '5');
	stx_expect_log(X, "0>5@4 ");
	stx_expect_rest();
}

/* ---- a crash ---- */

TEST(a_crash_under_the_lock, .from = STACK_TXN_STAGED,
    .times = STACK_TXN_DONE - STACK_TXN_STAGED)
{
	const struct record_member m = stack_txn_member(0, "", MAIN, '2');

	stx.end = (enum stack_txn_step)_i;
	ck_assert_int_eq(stack_txn_apply(&stx, &m, 1), -EAGAIN);
	stx_crash();
	wr_start();
	stx_expect(MAIN, _i == STACK_TXN_STAGED ? '1' : '2');
	ck_assert_uint_eq(w->found[STORE_ROLLED_FORWARD],
	    _i == STACK_TXN_LOGGED || _i == STACK_TXN_SYNCED);
	ck_assert_ptr_null(stack_txn_litter(w));
	stx_expect_rest();
}
