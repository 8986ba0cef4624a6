/*
 * Proves the effects of a batch on a repository with reftables, on a healthy
 * disk: symbolic refs, worktrees, other writers between the steps. No lock or
 * staged file is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/apply_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tables_rig.h"

/* One batch takes one of two transactions. */
static void one_of(const char *a, const char *b)
{
	struct txn *txns[] = { world_begin(w, a, false),
		world_begin(w, b, false) };

	world_batch(w, txns, 2);
	ck_assert_int_eq(txns[0]->updates[0].status +
		txns[1]->updates[0].status,
	    REFD_OK + REFD_PENDING);
	world_done(w, txns[0]);
	world_done(w, txns[1]);
}

CASE(.name = "healthy", .setup = tbl_setup, .teardown = tbl_teardown);

/* Two transactions meet at the end of a symbolic ref, or one of them is in the
 * way of the other. */
TEST(ends_meet)
{
	wr_ok("s>main;u>main;t>x/y;v>z;p>k;q>k/y");
	one_of("s=1", "main=2");
	one_of("s=1", "u=2");
	one_of("t=1", "x=2");
	ck_assert(tbl_ref("x") == '0' || tbl_ref("x/y") == '0');
	one_of("v=1", "z/x=2");
	one_of("p=1", "q=2");
}

/* ---- another writer between any two calls ---- */

static const char lock[] = WORLD_REPO "/reftable/tables.list.lock";

enum meddling { SAME_REF, REF_ABOVE, OTHER_REF, MERGE, MERGE_ALL, CLEAN };
#define MEDDLINGS (CLEAN + 1)

/* HAS_WRITTEN: before the batch has published. */
static bool has_written, is_late;

/* Git waits for the lock, here for ever. */
static void meddle(struct memfs *fs, void *arg)
{
	const enum meddling what = *(const enum meddling *)arg;

	if (memfs_exists(fs, lock))
		return;
	is_late = tbl_ref("a") == '2';
	has_written = !is_late;
	switch (what) {
	case SAME_REF:
		tbl_git("a", '5');
		break;
	case REF_ABOVE:
		tbl_git("n", '5');
		break;
	case OTHER_REF:
		tbl_git("b", '5');
		break;
	case MERGE:
		tbl_git("b", '5');
		stk_git_merge(1, 3);
		break;
	case MERGE_ALL:
		tbl_git("b", '5');
		stk_git_merge(0, 3);
		break;
	case CLEAN:
		tbl_git("b", '5');
		stk_git_clean();
		break;
	}
}

CASE(.name = "another writer", .seconds = 120);

TEST(another_writer, .times = MEDDLINGS)
{
	enum meddling what = (enum meddling)_i;
	struct txn *txn;
	unsigned long n, before, all = 1;

	for (n = 0; n < all; n++) {
		tbl_setup();
		OK("a=1");
		before = memfs_nr_calls(w->fs);
		has_written = is_late = false;
		memfs_between(w->fs, n, meddle, &what);
		txn = world_apply(w, "a=2:1;n/x=1", true);
		all = memfs_nr_calls(w->fs) - before;
		if (has_written && (what == SAME_REF || what == REF_ABOVE)) {
			ck_assert_int_ne(txn->updates[0].status, REFD_OK);
			ck_assert_int_eq(tbl_ref("n/x"), '0');
			ck_assert_int_eq(tbl_ref(what == SAME_REF ? "a" : "n"),
			    '5');
		} else {
			ck_assert_msg(txn->updates[0].status == REFD_OK,
			    "%d at %lu: %s", _i, n, txn->updates[0].text);
			ck_assert_int_eq(tbl_ref("a"),
			    is_late && what == SAME_REF ? '5' : '2');
			ck_assert_int_eq(tbl_ref("n/x"), '1');
			if (what > REF_ABOVE)
				ck_assert_int_eq(tbl_ref("b"),
				    has_written || is_late ? '5' : '0');
			ck_assert_int_eq(tbl_log_count("a", '1', '2'), 1);
		}
		ck_assert_int_eq(tbl_ref("keep"), '1');
		memfs_fail_none(w->fs);
		world_done(w, txn);
		tbl_teardown();
	}
}

struct writer {
	unsigned left, gap; /* in calls */
};

/* Git writes before each call, or with a gap, until the lock stands. */
static void write_always(struct memfs *fs, void *arg)
{
	struct writer *writer = arg;

	if (memfs_exists(fs, lock) || writer->left == 0)
		return;
	writer->left--;
	tbl_git("b", '5');
	memfs_between(fs, writer->gap, write_always, writer);
}

TEST(a_busy_writer)
{
	struct writer writer = { .left = 600 };

	tbl_setup();
	OK("a=1");
	memfs_between(w->fs, 0, write_always, &writer);
	OK("a=2:1");
	ck_assert_uint_gt(writer.left, 0);
	ck_assert_int_eq(tbl_ref("a"), '2');
	ck_assert_int_eq(tbl_ref("b"), '5');
	tbl_teardown();
}

/* Git writes to the stack that the batch only reads. */
TEST(a_busy_writer_beside)
{
	struct writer writer = { .left = 400, .gap = 20 };

	tbl_setup_worktree();
	memfs_between(w->fs, 0, write_always, &writer);
	OK("@worktrees/wt/refs/bisect/bad=1");
	ck_assert_uint_gt(writer.left, 0);
	ck_assert(!memfs_exists(w->fs, lock));
	ck_assert_int_eq(tbl_ref("b"), '5');
	tbl_use("wt");
	ck_assert_int_eq(tbl_ref("@refs/bisect/bad"), '1');
	tbl_teardown();
}

/* With more than STACK_LARGE bytes. */
static char *large_spec(void)
{
	char *spec = calloc(1, 131072);
	size_t len = (size_t)sprintf(spec, "a=2:1;n/x=1");
	unsigned i;

	for (i = 0; i < 400; i++)
		len += (size_t)sprintf(spec + len, ";large/%0230u=1", i);
	return spec;
}

TEST(a_large_table, .times = 4)
{
	static const enum meddling kinds[] = { SAME_REF, REF_ABOVE, OTHER_REF,
		MERGE_ALL };
	enum meddling what = kinds[_i];
	char *spec = large_spec();
	struct txn *txn;
	unsigned long n, before, all = 1;

	for (n = 0; n < all; n += 3) {
		tbl_setup();
		OK("a=1");
		before = memfs_nr_calls(w->fs);
		has_written = is_late = false;
		memfs_between(w->fs, n, meddle, &what);
		txn = world_apply(w, spec, true);
		all = memfs_nr_calls(w->fs) - before;
		ck_assert_int_eq(txn->updates[0].status == REFD_OK,
		    what > REF_ABOVE || !has_written);
		ck_assert_int_eq(tbl_ref("n/x") == '1',
		    txn->updates[0].status == REFD_OK);
		if (has_written)
			ck_assert_int_eq(tbl_ref(what == SAME_REF  ? "a" :
						 what == REF_ABOVE ? "n" :
								     "b"),
			    '5');
		memfs_fail_none(w->fs);
		world_done(w, txn);
		tbl_teardown();
	}
	free(spec);
}

static unsigned under_lock;

static void count_locked(struct memfs *fs, void *arg)
{
	(void)arg;
	under_lock += memfs_exists(fs, lock);
}

TEST(system_calls_under_the_lock)
{
	unsigned long n, before, all = 1;

	under_lock = 0;
	for (n = 0; n < all; n++) {
		tbl_setup();
		OK("a=1");
		memfs_between(w->fs, n, count_locked, NULL);
		before = memfs_nr_calls(w->fs);
		wr_ok("a=2:1;n/x=1");
		all = memfs_nr_calls(w->fs) - before;
		tbl_teardown();
	}
	/* Two of them lock and unlock the table of the first batch, which is
	 * folded. */
	ck_assert_uint_gt(under_lock, 5);
	ck_assert_uint_le(under_lock, 28);
}

/* ---- worktrees ---- */

#define WT_HEAD "@worktrees/wt/HEAD"

CASE(.name = "worktree", .setup = tbl_setup_worktree, .teardown = tbl_teardown);

TEST(two_stacks)
{
	OK(WT_HEAD "=1");
	ck_assert_int_eq(tbl_ref("side"), '1');
	ck_assert_int_eq(tbl_log_count("side", '0', '1'), 1);
	tbl_use("wt");
	ck_assert_int_eq(tbl_ref("@HEAD"), '>');
	ck_assert_int_eq(tbl_log_count("@HEAD", '0', '1'), 1);
	/* HEAD moves away before the lists are locked. */
	OK("!" WT_HEAD ">main");
	tbl_use("");
	OK(WT_HEAD "=2");
	ck_assert_int_eq(tbl_ref("side"), '1');
	ck_assert_int_eq(tbl_ref("main"), '2');
	OK("@worktrees/wt/refs/bisect/bad=1");
	tbl_use("wt");
	ck_assert_int_eq(tbl_ref("@refs/bisect/bad"), '1');
}

/* A client can say which lock is in the way. */
TEST(a_held_lock_is_named)
{
	struct txn *txn;

	memfs_write(w->fs, lock, "");
	txn = world_apply(w, "b=1", false);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_LOCKED);
	ck_assert_str_eq(txn->updates[0].locked_path, "reftable/tables.list");
	world_done(w, txn);
	wr_unlink(lock);
}

/* The lock of the second list is held: the first is unlocked. */
TEST(second_lock_is_held)
{
	static const char wt_lock[] =
	    WORLD_REPO "/worktrees/wt/reftable/tables.list.lock";
	struct txn *txn;

	memfs_write(w->fs, wt_lock, "");
	txn = world_apply(w, WT_HEAD "=1;b=1", false);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_LOCKED);
	ck_assert_int_eq(txn->updates[1].again, TXN_AGAIN_LOCKED);
	world_done(w, txn);
	ck_assert(!memfs_exists(w->fs, lock));
	wr_unlink(wt_lock);
	wr_ok(WT_HEAD "=1;b=1");
}

/* ---- failures ---- */

CASE(.name = "no damage", .setup = tbl_setup, .teardown = tbl_teardown);

/* A table that has no room is made for each transaction alone. */
TEST(no_room_for_all)
{
	struct txn *txns[2];
	size_t i;

	for (i = 0; i < 2; i++)
		txns[i] = world_begin(w, i == 0 ? "a=1;keep=2:3" : "b=1", i);
	memfs_fail_call(w->fs, MEMFS_WRITE_ALL, 0, -ENOSPC);
	world_batch(w, txns, 2);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_int_eq(txns[0]->updates[0].status, REFD_OK);
	ck_assert_int_eq(txns[0]->updates[1].status, REFD_STALE);
	ck_assert_int_eq(txns[1]->updates[0].status, REFD_OK);
	for (i = 0; i < 2; i++)
		world_done(w, txns[i]);
	ck_assert_int_eq(tbl_ref("a"), '1');
	ck_assert_int_eq(tbl_ref("b"), '1');
}

/* After a failed flush: no rename, and a new table at the next try. */
TEST(flush_fails, .times = 3)
{
	struct txn *txn;

	OK("a=1");
	memfs_fail_call(w->fs, MEMFS_FSYNC, (unsigned long)_i, -EIO);
	txn = world_apply(w, "a=2;b=1", true);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_int_eq(txn->updates[0].status, REFD_IO);
	ck_assert_int_eq(txn->updates[1].status, REFD_ABORTED);
	world_done(w, txn);
	ck_assert_int_eq(tbl_ref("a"), '1');
	ck_assert_int_eq(tbl_ref("b"), '0');
	wr_expect_locks("");
	/* The names in the directory are lost: nobody gets the repository. */
	if (_i == 2)
		ck_assert_ptr_null(world_repo(w, WORLD_REPO));
	else
		wr_ok("a=2:1;b=1");
}

/* With _i the rename has happened all the same. */
TEST(a_doubtful_rename_is_counted, .times = 2)
{
	OK("a=1");
	if (_i == 0)
		memfs_fail_call(w->fs, MEMFS_RENAMEAT, 0, -EIO);
	else
		memfs_fail_after(w->fs, MEMFS_RENAMEAT, 0, -EIO);
	world_done(w, world_apply(w, "a=2;b=1", false));
	memfs_fail_none(w->fs);
	ck_assert_uint_eq(w->kept, 2);
	ck_assert(memfs_exists(w->fs, lock));
	memfs_crash(w->fs);
	world_crash(w);
	wr_start();
}

/* Whatever the error is, a second flush of git's files might succeed without
 * their bytes. */
static const struct {
	int err;
	enum refd_status status;
} flush_errors[] = {
	{ -EIO, REFD_IO },
	{ -ENOSPC, REFD_NOSPACE },
	/* That of a changed list would mean that a new round may flush. */
	{ -ESTALE, REFD_IO },
};
#define NR_FLUSH_ERRORS ((int)(sizeof(flush_errors) / sizeof(*flush_errors)))

TEST(foreign_flush_fails, .times = 2 * NR_FLUSH_ERRORS)
{
	const int i = _i % NR_FLUSH_ERRORS;
	const enum memfs_call call =
	    _i < NR_FLUSH_ERRORS ? MEMFS_FSYNC : MEMFS_WRITE_OUT_WAIT;
	struct txn *txn;

	OK("a=1");
	tbl_git("g", '1');
	memfs_fail_call(w->fs, call, 0, flush_errors[i].err);
	txn = world_apply(w, "a=2", false);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_int_eq(txn->updates[0].status, flush_errors[i].status);
	world_done(w, txn);
	ck_assert_int_eq(tbl_ref("a"), '1');
	wr_expect_locks("");
	ck_assert_ptr_null(world_repo(w, WORLD_REPO));
}
