/*
 * Proves that a session keeps its locks from prepare to its end. Other writers
 * may change the repository meanwhile. No lock or file is left.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/apply_rig.h"
#include "tests/lib/suite.h"

START_TEST(a_session_holds_its_locks)
{
	struct txn *txn, *other;

	OK("a=1");
	txn = world_session(w, "a=2:1;@HEAD=2;-gone", true);
	ck_assert_ptr_nonnull(txn->prepared);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	ck_assert_ptr_null(txn->updates[0].final_name);
	ck_assert_str_eq(txn->updates[1].final_name, "refs/heads/main");
	ck_assert(!txn->rewrites_packed);
	ck_assert_int_eq(world_ref(w, "a"), '1');
	other = world_apply(w, "a=3", false);
	ck_assert_int_eq(other->updates[0].status, REFD_PENDING);
	ck_assert_int_eq(other->updates[0].again, TXN_AGAIN_LOCKED);
	ck_assert_str_eq(other->updates[0].locked_path, "refs/heads/a");
	world_done(w, other);
	other = world_apply(w, "main=3", false);
	ck_assert_int_eq(other->updates[0].again, TXN_AGAIN_LOCKED);
	world_done(w, other);
	other = world_apply(w, "b=1", false);
	ck_assert_int_eq(other->updates[0].status, REFD_OK);
	world_done(w, other);
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert_int_eq(txn->updates[1].status, REFD_OK);
	world_done(w, txn);
	wr_expect_locks("");
	ck_assert_int_eq(world_ref(w, "a"), '2');
	ck_assert_int_eq(world_ref(w, "main"), '2');
}
END_TEST

START_TEST(an_aborted_session_leaves_nothing)
{
	uint64_t before;
	struct txn *txn;

	OK("a=1");
	before = journal_last_lsn(w->store.journal);
	txn = world_session(w, "a=2;-a2;new/x=1", true);
	ck_assert_ptr_nonnull(txn->prepared);
	world_session_end(w, txn, false);
	ck_assert_ptr_null(txn->prepared);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	world_done(w, txn);
	wr_expect_locks("");
	ck_assert_int_eq(world_ref(w, "a"), '1');
	ck_assert(!world_has_log(w, "new/x"));
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/logs/refs/heads/new"));
	ck_assert(world_has_log(w, "a"));
	ck_assert_uint_eq(journal_last_lsn(w->store.journal), before);
}
END_TEST

/* If a ref is locked elsewhere, holding the other refs is no use. */
START_TEST(a_session_is_prepared_whole)
{
	struct txn *txn;

	memfs_write(w->fs, WORLD_REPO "/refs/heads/b.lock", "");
	txn = world_session(w, "a=1;b=1;c=1:5", false);
	ck_assert_ptr_null(txn->prepared);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_LOCKED);
	ck_assert_int_eq(txn->updates[1].again, TXN_AGAIN_LOCKED);
	ck_assert_int_eq(txn->updates[2].status, REFD_MISSING);
	world_done(w, txn);
	wr_expect_locks("/srv/r.git/refs/heads/b.lock\n");
	SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
	    WORLD_REPO "/refs/heads/b.lock");
	txn = world_session(w, "a=1:7", true);
	ck_assert_ptr_null(txn->prepared);
	ck_assert_int_eq(txn->updates[0].status, REFD_MISSING);
	world_done(w, txn);
	wr_expect_locks("");
}
END_TEST

START_TEST(a_session_holds_no_packed_refs_of_old)
{
	struct txn *txn;
	unsigned long nr;

	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "3131313131313131313131313131313131313131 refs/heads/p\n");
	OK("a=1");
	nr = memfs_open_fds(w->fs);
	txn = world_session(w, "a=2", true);
	ck_assert_ptr_nonnull(txn->prepared);
	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "3131313131313131313131313131313131313131 refs/heads/longer\n");
	world_done(w, world_apply(w, "b=1", false));
	ck_assert_uint_eq(memfs_open_fds(w->fs), nr);
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	ck_assert_int_eq(world_ref(w, "a"), '2');
}
END_TEST

/* A hook may run "git config". A repository of another format has no loose
 * refs. */
START_TEST(the_config_may_change_while_a_session_is_prepared)
{
	struct txn *txn;

	txn = world_session(w, "a=1", true);
	memfs_write(w->fs, WORLD_REPO "/config",
	    "[core]\n\tbare = true\n[x]\n\ty = z\n");
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	ck_assert_int_eq(world_ref(w, "a"), '1');
	txn = world_session(w, "a=2", true);
	memfs_mkdirs(w->fs, WORLD_REPO "/reftable");
	memfs_write(w->fs, WORLD_REPO "/config", "[core]\n\tbare = true\n");
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_NOREPO);
	world_done(w, txn);
	wr_expect_locks("");
	ck_assert_int_eq(world_ref(w, "a"), '1');
}
END_TEST

/* However long locking takes. */
START_TEST(a_session_never_leaves_some_for_later)
{
	struct txn *txn;

	w->store.pipeline->applier.prepare_max_ns = -1;
	txn = world_session(w, "a=1;b=1", false);
	ck_assert_ptr_nonnull(txn->prepared);
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[1].status, REFD_OK);
	world_done(w, txn);
}
END_TEST

/* As git advises for a lock that may be stale. */
START_TEST(somebody_removes_the_lock_of_packed_refs)
{
	struct txn *txn, *other;

	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/p\n"
	    "3232323232323232323232323232323232323232 refs/heads/q\n");
	txn = world_session(w, "-p", true);
	ck_assert_ptr_nonnull(txn->prepared);
	SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
	    WORLD_REPO "/packed-refs.lock");
	other = world_apply(w, "-q", true);
	ck_assert_int_eq(other->updates[0].again, TXN_AGAIN_LOCKED);
	world_done(w, other);
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	wr_expect_locks("");
	ck_assert_int_eq(world_ref(w, "p"), '0');
	ck_assert_int_eq(world_ref(w, "q"), '2');
	apply_expect("-q", true, 1, REFD_OK);
}
END_TEST

START_TEST(a_session_that_dies_prepared_never_was)
{
	struct txn *txn;

	OK("a=1");
	txn = world_session(w, "a=2;@HEAD=2;-a3", true);
	ck_assert_ptr_nonnull(txn->prepared);
	memfs_crash(w->fs);
	/* A crashed daemon can't unlock. */
	world_session_end(w, txn, false);
	world_done(w, txn);
	world_crash(w);
	ck_assert_int_eq(world_start(w), 0);
	wr_expect_locks("");
	ck_assert_int_eq(world_ref(w, "a"), '1');
	ck_assert_int_eq(world_ref(w, "main"), '0');
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("apply_session");
	TCase *tc = tcase_create("session");

	tcase_add_checked_fixture(tc, wr_setup, wr_teardown);
	tcase_add_test(tc, a_session_holds_its_locks);
	tcase_add_test(tc, an_aborted_session_leaves_nothing);
	tcase_add_test(tc, a_session_is_prepared_whole);
	tcase_add_test(tc, a_session_holds_no_packed_refs_of_old);
	tcase_add_test(tc, the_config_may_change_while_a_session_is_prepared);
	tcase_add_test(tc, a_session_never_leaves_some_for_later);
	tcase_add_test(tc, somebody_removes_the_lock_of_packed_refs);
	tcase_add_test(tc, a_session_that_dies_prepared_never_was);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
