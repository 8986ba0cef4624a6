/*
 * Proves that recovery does not tear an atomic transaction if a foreign writer
 * took a name during the flush, before the daemon was killed. The abort is
 * recorded before the locks go. An update that was taken back because of a disk
 * error stays so after a power loss.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define X WORLD_REPO "/refs/heads/x"

static int commit_then_kill(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	int r = journal_commit(w->store.journal, rows, nr, flush);

	(void)arg;
	memfs_write(w->fs, WORLD_REPO "/refs/heads/q/z",
	    "3535353535353535353535353535353535353535\n");
	memfs_crash_at(w->fs, 0);
	return r;
}

CASE(.setup = wr_setup_apart, .teardown = wr_teardown, .seconds = 60);

/* The start after the crash is killed at every change, too. The locks go after
 * the abort is recorded. Without the locks the next start would find nothing
 * unfinished, and the journal would say ok. */
TEST(a_crashed_start_unlocks_nothing_unrecorded, .times = 2)
{
	struct scripted_txn h = { .w = NULL };
	struct txn *txn;
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		w->store.pipeline->applier.commit = commit_then_kill;
		txn = world_apply(w, "p=1;q=1", _i == 1);
		h.w = w;
		h.txid = txn->req.txid;
		world_done(w, txn);
		memfs_crash(w->fs);
		world_crash(w);
		memfs_crash_at(w->fs, n);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_int_eq(scripted_status(&h, 1), REFD_CONFLICT);
		ck_assert_int_eq(scripted_status(&h, 0),
		    _i == 1 ? REFD_ABORTED : REFD_OK);
		ck_assert_int_eq(world_ref(w, "p"), _i == 1 ? '0' : '1');
		wr_expect_locks("");
	}
	ck_assert_uint_gt(n, 5);
}

#define LOGS    WORLD_REPO "/logs/refs/heads"
#define OUTSIDE "/srv/outside"

/* The directory of the logs becomes a link out of the repository. */
static void move_logs(void)
{
	wr_rename(LOGS, OUTSIDE);
	memfs_symlink(w->fs, OUTSIDE, LOGS);
}

/* A member of the repository's group replaced P's log by something else
 * meanwhile. No work waits for this. */
TEST(what_stands_in_a_log_s_place_is_in_nobodys_way, .times = 3)
{
	static const char log[] = LOGS "/p";
	char *was;

	w->store.pipeline->applier.commit = commit_then_kill;
	world_done(w, world_apply(w, "p=1;q=1", true));
	memfs_crash(w->fs);
	was = memfs_read(w->fs, log, NULL);
	ck_assert_ptr_nonnull(was);
	if (_i == 2)
		move_logs();
	else
		wr_unlink(log);
	if (_i == 0)
		memfs_symlink(w->fs, WORLD_REPO "/config", log);
	else if (_i == 1)
		memfs_mkdirs(w->fs, WORLD_REPO "/logs/refs/heads/p/x");
	world_crash(w);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	wr_expect_locks("");
	ck_assert_int_eq(world_ref(w, "p"), '0');
	if (_i == 2)
		ck_assert(memfs_holds(w->fs, OUTSIDE "/p", was));
	else
		wr_ok("r=1");
	free(was);
}

/* A disk fails the last step of an atomic transaction. The creation was linked
 * and unlinked, and the abort was recorded. The power loss may keep the link,
 * even as an empty file. Recovery removes the ref, unless git has made it
 * since. */
static void take_back(void)
{
	struct txn *txn;
	unsigned long n;

	for (n = 0; n < 20; n++) {
		wr_teardown();
		wr_setup_apart();
		memfs_write(w->fs, WORLD_REPO "/packed-refs",
		    "# pack-refs with: peeled fully-peeled sorted \n"
		    "3131313131313131313131313131313131313131"
		    " refs/heads/p\n");
		txn = world_begin(w, "x=1:0;-p:1", true);
		memfs_fail_call(w->fs, MEMFS_RENAMEAT, n, -ENOSPC);
		world_batch(w, &txn, 1);
		memfs_fail_none(w->fs);
		ck_assert_int_eq(txn->updates[0].status == REFD_OK,
		    txn->updates[1].status == REFD_OK);
		if (txn->updates[1].status == REFD_NOSPACE) {
			world_done(w, txn);
			return;
		}
		world_done(w, txn);
	}
	ck_abort_msg("nothing was taken back");
}

TEST(what_was_taken_back_stays_away, .times = 205)
{
	bool is_gits = _i >= 200;

	take_back();
	ck_assert_int_eq(world_ref(w, "x"), '0');
	if (is_gits) {
		memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads");
		scripted_git_writes(w, X,
		    "3131313131313131313131313131313131313131\n");
		scripted_sync(w);
	}
	ck_assert_int_eq(
	    scripted_power_loss(w, (enum memfs_data)(_i % 5), _i % 200 / 5), 0);
	ck_assert_int_eq(world_ref(w, "x"), is_gits ? '1' : '0');
	ck_assert_int_eq(world_ref(w, "p"), '1');
	ck_assert_int_eq(world_has_log(w, "x"), false);
}

/* Only the record tells that the ref is none. A checkpoint needs it until its
 * sync has made the removal durable, too. */
TEST(what_was_taken_back_stays_away_after_a_checkpoint, .times = 200)
{
	take_back();
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert_int_eq(
	    scripted_power_loss(w, (enum memfs_data)(_i % 5), _i / 5), 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_ref(w, "p"), '1');
}

/* No file is deleted behind a link in the place of the log's directory. */
TEST(what_was_taken_back_has_no_log_behind_a_link)
{
	uint64_t nr_deleted = 0;
	int i;

	for (i = 0; i < 200; i++) {
		take_back();
		scripted_sync(w);
		move_logs();
		memfs_write(w->fs, OUTSIDE "/x", "");
		memfs_write(w->fs, X, "");
		wr_power_loss((enum memfs_data)(i % 5), i / 5);
		wr_start();
		nr_deleted += w->found[STORE_REDONE];
		ck_assert_int_eq(world_ref(w, "x"), '0');
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert(memfs_exists(w->fs, OUTSIDE "/x"));
	}
	ck_assert_uint_gt(nr_deleted, 0);
}
