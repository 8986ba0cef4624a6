/*
 * Proves that recovery in the journal of a group of nodes gives up no update on
 * this node alone. If an update would be left, dropped or deferred, the start
 * goes on, and all updates of the repository wait. At each start and retry,
 * this node counts as a node that lacks these updates, until the cause is gone.
 * The updates of a missing repository wait until the repository is back.
 * Ordinary recovery works as on a single machine. A log line that can't be
 * written makes no repository wait.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/recovery/recover_internal.h"
#include "tests/lib/lack_rig.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"

#define REF   WORLD_REPO "/refs/heads/x"
#define OTHER "/srv/other.git"
#define AWAY  "/srv/away.git"
#define TWOS  "2222222222222222222222222222222222222222\n"

CASE(.setup = lack_setup, .teardown = wr_teardown);

TEST(a_lost_value_is_redone)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	lack_starts();
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
}

TEST(a_later_foreign_write)
{
	wr_ok("x=1");
	wr_ok("y=1");
	scripted_git_writes(w, REF, TWOS);
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	lack_waits(STORE_LEFT, "refs/heads/x");
	world_write(w->fs, REF, "@1\n");
	lack_starts();
	ck_assert_int_eq(world_ref(w, "y"), '1');
}

TEST(a_foreign_lock)
{
	wr_ok("x=1");
	memfs_write(w->fs, REF ".lock", "");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, REF ".lock", "");
	lack_waits(STORE_DEFERRED, "refs/heads/x");
	wr_unlink(REF ".lock");
	lack_starts();
}

/* No abort record is written, and the locks stay. */
TEST(a_name_that_was_taken_before_a_crash)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn h = { .w = w };

	m.answers = true;
	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
	memfs_write(w->fs, REF "/z", TWOS);
	lack_end();
	lack_waits(STORE_DROPPED, "refs/heads/x");
	ck_assert(memfs_exists(w->fs, REF ".lock"));
	wr_unlink(REF "/z");
	lack_starts();
	ck_assert_int_eq(scripted_status(&h, 0), REFD_OK);
}

static int commit_then_die(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	int r = journal_commit(w->store.journal, rows, nr, flush);

	(void)arg;
	memfs_write(w->fs, REF "/z", TWOS);
	memfs_crash_at(w->fs, 0);
	return r;
}

TEST(an_atomic_transaction_whose_name_was_taken)
{
	w->store.pipeline->applier.commit = commit_then_die;
	world_done(w, world_apply(w, "x=1;y=1", true));
	lack_end();
	lack_waits(STORE_DROPPED, "refs/heads/x");
	wr_unlink(REF "/z");
	lack_starts();
	ck_assert_int_eq(world_ref(w, "y"), '1');
}

static int import_then_die(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/y\n");
	return commit_then_die(arg, rows, nr, flush);
}

/* The row of an import has no old values, and its refs were there before. */
TEST(an_import_whose_name_was_taken)
{
	w->store.pipeline->applier.commit = import_then_die;
	world_done(w, world_apply(w, "x=1;y=1", true));
	lack_end();
	lack_waits(STORE_DROPPED, "refs/heads/x");
	ck_assert_int_eq(world_ref(w, "y"), '1');
}

/* ---- log lines: each node has logs of its own ---- */

#define LOG       WORLD_REPO "/logs/refs/heads/x"
#define HEAD_LOCK WORLD_REPO "/HEAD.lock"

/* After the power loss, x has the value, and the log is lost. */
static void lose_log(void)
{
	wr_ok("x=1");
	scripted_sync(w);
	wr_unlink(LOG);
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
}

/* Each start goes on, and keeps one line for later ones. */
static void keeps_line(const char *locks)
{
	int i;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_uint_eq(w->found[STORE_DEFERRED], 1);
		ck_assert_uint_eq(w->deferred, 1);
		ck_assert_uint_eq(lack_nr(), 0);
		ck_assert_int_eq(world_ref(w, "x"), '1');
		/* Nobody waits for the line. */
		ck_assert_int_eq(world_retry(w), 0);
		ck_assert_uint_eq(w->deferred, 1);
		ck_assert_uint_eq(w->nr_still, 0);
		wr_expect_locks(locks);
		lack_end();
	}
}

/* The quota of its owner is full. */
TEST(a_log_without_room)
{
	lose_log();
	memfs_set_room(w->fs, wr_home, 0, -1);
	keeps_line("");
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 0);
	memfs_set_room(w->fs, wr_home, -1, -1);
	lack_starts();
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
}

TEST(a_log_whose_name_was_taken)
{
	lose_log();
	memfs_write(w->fs, LOG "/z", "");
	lack_starts();
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
}

/* The line of HEAD follows from the update of x. */
TEST(a_foreign_lock_on_a_log)
{
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", '0',
					 '1'),
		scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1') };
	struct scripted_txn h = { .w = w, .publish = SCRIPTED_ALL };

	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, HEAD_LOCK, "");
	keeps_line(HEAD_LOCK "\n");
	wr_unlink(HEAD_LOCK);
	lack_starts();
	ck_assert_int_eq(
	    scripted_log_lines(w, WORLD_REPO "/logs/HEAD", '0', '1'), 1);
}

/* ---- repositories ---- */

/* A program may have removed or renamed it. Nobody sees its refs before the
 * redo. */
TEST(a_missing_repository)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->found[STORE_REPO_MISSING], 1);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(lack_nr(), 0);
	wr_rename(AWAY, WORLD_REPO);
	memfs_write(w->fs, REF ".lock", "");
	ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
	ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
	wr_unlink(REF ".lock");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* As before, and the start after that is on time. */
TEST(a_missing_repository_comes_back, .times = 2)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	wr_rename(AWAY, WORLD_REPO);
	if (_i > 0)
		memfs_write(w->fs, REF ".lock", "");
	lack_end();
	if (_i > 0) {
		lack_waits(STORE_DEFERRED, "refs/heads/x");
		wr_unlink(REF ".lock");
	}
	lack_starts();
}

/* Each repository waits for its own cause, or is redone. */
TEST(all_repositories, .times = 2)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn h = { .w = w }, other = { .w = w, .repo = OTHER };

	lack_make_repo(OTHER);
	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
	ck_assert_int_eq(scripted_apply(&other, &m, 1), -EAGAIN);
	memfs_write(w->fs, REF "/z", TWOS);
	lack_end();
	if (_i == 0)
		wr_rename(OTHER, AWAY);
	lack_waits(STORE_DROPPED, "refs/heads/x");
	if (_i == 0)
		wr_rename(AWAY, OTHER);
	else
		ck_assert(memfs_exists(w->fs, OTHER "/refs/heads/x"));
	wr_unlink(REF "/z");
	lack_starts();
	ck_assert(memfs_exists(w->fs, OTHER "/refs/heads/x"));
}

/* The other nodes have the object. A node that waited for the object would not
 * lead. */
TEST(a_damaged_object)
{
	wr_ok("x=1");
	wr_ok("x=p:1");
	wr_ok("y=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->found[STORE_OBJECT_LACKING], 1);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), 'p');
	ck_assert_int_eq(world_ref(w, "y"), '1');
	wr_expect_locks("");
}

TEST(an_object_pruned_since)
{
	wr_ok("x=p");
	wr_ok("-x");
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	lack_starts();
	ck_assert_uint_eq(w->found[STORE_OBJECT_LACKING], 0);
}

/* The next start meets the same file. */
TEST(a_malformed_packed_refs)
{
	wr_ok("x=1");
	memfs_write(w->fs, WORLD_REPO "/packed-refs", "torn");
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	lack_waits(STORE_CORRUPT, "packed-refs");
	wr_expect_file(WORLD_REPO "/packed-refs", "torn");
	wr_unlink(WORLD_REPO "/packed-refs");
	lack_starts();
}

/* One that was deferred before the node joined its group. */
TEST(a_deferred_record)
{
	world_free(w);
	wr_setup_apart();
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, REF ".lock", "");
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	lack_join();
	lack_end();
	lack_waits(STORE_DEFERRED, "refs/heads/x");
	wr_unlink(REF ".lock");
	lack_starts();
}

/* No update awaits the redo there, so the node lacks none. */
TEST(a_repository_that_can_not_be_opened)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn other = { .w = w,
		.repo = OTHER,
		.publish = SCRIPTED_ALL };

	lack_make_repo(OTHER);
	ck_assert_int_eq(scripted_apply(&other, &m, 1), 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("x=1");
	wr_unlink(OTHER "/refd/lock");
	memfs_mkdirs(w->fs, OTHER "/refd/lock");
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	lack_starts();
	ck_assert_uint_eq(w->found[STORE_FAILED], 1);
}

/* ---- what stops the start ---- */

/* The machine is short of memory, and no repository is to blame. */
TEST(no_memory)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_fail_call(w->fs, MEMFS_LINKAT, 0, -ENOMEM);
	ck_assert_int_eq(world_start(w), -ENOMEM);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	lack_starts();
}

TEST(a_failed_sync)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_eq(world_start(w), -ENOTRECOVERABLE);
	ck_assert(memfs_was_hit(w->fs));
	ck_assert_ptr_nonnull(strstr(w->why, "'" WORLD_REPO "': "));
	memfs_fail_none(w->fs);
	lack_starts();
}

/* Neither does the running store write such rows. */
TEST(no_row_defers_or_aborts)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	bool no = false;
	const struct replay_row row = { .row = { .shared_lsn = 7 },
		.rec = { .committer = "",
		    .message = "",
		    .nr_updates = 1,
		    .object_format = world_format(),
		    .members = &m,
		    .nr_members = 1 },
		.dropped = &no };
	struct replay_member failed = { &row, &m, REFD_CONFLICT, "" };
	const struct replay_members aborted = { &failed, 1, 1 };
	uint64_t last = journal_last_lsn(w->store.journal), nr = 0;
	struct recover_notes notes;
	int i, r;

	for (i = 0; i < 2; i++) {
		notes = (struct recover_notes){ .nr = 0 };
		r = i == 0 ? recover_notes_defer_row(&notes, &row, 0, &nr) :
			     recover_notes_abort(&notes, &aborted);
		ck_assert_int_eq(r, 0);
		/* The other nodes know nothing of these rows. */
		ck_assert_uint_eq(notes.rows[0].shared_lsn, 0);
		ck_assert_int_eq(recover_notes_write(&notes, w->store.log),
		    -ENOTRECOVERABLE);
		recover_notes_done(&notes);
	}
	ck_assert_uint_eq(journal_last_lsn(w->store.journal), last);
}
