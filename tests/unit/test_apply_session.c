/*
 * Proves that a session keeps its locks from prepare to its end. Other writers
 * may change the repository meanwhile. No lock or file is left.
 */
#include <fcntl.h>

#include "tests/lib/apply_rig.h"
#include "tests/lib/suite.h"

CASE(.setup = wr_setup, .teardown = wr_teardown);

/* If a ref is locked elsewhere, holding the other refs is no use. */
TEST(a_session_is_prepared_whole)
{
	struct txn *txn;

	memfs_write(w->fs, WORLD_REPO "/refs/heads/b.lock", "");
	txn = world_session(w, "a=1;b=1;c=1:5", false);
	ck_assert_ptr_null(txn->prepared);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_LOCKED);
	ck_assert_int_eq(txn->updates[1].again, TXN_AGAIN_LOCKED);
	ck_assert_str_eq(txn->updates[1].locked_path, "refs/heads/b");
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

TEST(a_session_holds_no_packed_refs_of_old)
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

/* A hook may run "git config". A repository of another format has no loose
 * refs. */
TEST(the_config_may_change_while_a_session_is_prepared)
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

/* However long locking takes. */
TEST(a_session_never_leaves_some_for_later)
{
	struct txn *txn;

	w->store.pipeline->applier.prepare_max_ns = -1;
	txn = world_session(w, "a=1;b=1", false);
	ck_assert_ptr_nonnull(txn->prepared);
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[1].status, REFD_OK);
	world_done(w, txn);
}
