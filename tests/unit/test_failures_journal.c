/*
 * Proves that no failure of the journal or of a file system loses an
 * acknowledged update. A failure can hit a checkpoint's syncfs, the marker
 * file, SQLite's own checkpoint, the abort record, the record of a missing log
 * line, a large commit, or the reopening. No record is forgotten too early, and
 * an answer by id is the truth. Only a failed reopening ends the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/checkpoint/checkpointer_internal.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"

#define STATE 1 /* the mount */

static struct world *w;

static void setup(void)
{
	w = world_new(memfs_new(), true);
	ck_assert_int_eq(world_start(w), 0);
}

static void teardown(void)
{
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
	world_free(w);
}

static enum refd_status status_of(const char *spec, struct refd_txid *id)
{
	struct txn *txn = world_apply(w, spec, false);
	enum refd_status status;

	ck_assert_ptr_nonnull(txn);
	status = txn->updates[0].status;
	if (id != NULL)
		*id = txn->req.txid;
	world_done(w, txn);
	return status;
}

static void ok(const char *spec)
{
	ck_assert_int_eq(status_of(spec, NULL), REFD_OK);
}

static enum refd_status asked(const struct refd_txid *id)
{
	struct scripted_txn h = { .w = w, .txid = *id };

	return scripted_status(&h, 0);
}

static void cut(void)
{
	ck_assert_int_eq(scripted_power_loss(w, MEMFS_DATA_NONE, 0), 0);
}

static uint64_t forgotten(void)
{
	return journal_forgotten(w->store.journal);
}

/* ---- the checkpoint ---- */

static const struct {
	enum memfs_call call;
	int err;
	unsigned long before; /* calls of this kind to skip */
} of_a_checkpoint[] = {
	{ MEMFS_SYNCFS, -EIO, 0 },
	{ MEMFS_SYNCFS, -ENOSPC, 0 },
	{ MEMFS_SYNCFS, -EDQUOT, 0 },
	{ MEMFS_FUTIMENS_NOW, -EIO, 0 },
	{ MEMFS_PWRITE, -EIO, 2 }, /* the sync is marked first */
	{ MEMFS_FSYNC, -EIO, 0 },
	{ MEMFS_FSYNC, -ENOSPC, 0 },
};
#define NR_OF_A_CHECKPOINT                                                     \
	((int)(sizeof(of_a_checkpoint) / sizeof(*of_a_checkpoint)))

static struct suite_case sweep = { .name = "sweep", .seconds = 60 };

CASE(.name = "failures", .setup = setup, .teardown = teardown);

TEST(what_was_not_synced_is_not_forgotten, .times = NR_OF_A_CHECKPOINT)
{
	uint64_t before = forgotten();
	const char *at;

	ok("x=1");
	memfs_fail_call(w->fs, of_a_checkpoint[_i].call,
	    of_a_checkpoint[_i].before, of_a_checkpoint[_i].err);
	ck_assert_int_lt(world_checkpoint(w), 0);
	ck_assert(memfs_was_hit(w->fs));
	at = memfs_hit(w->fs);
	ck_assert_ptr_null(strstr(at, "journal"));
	ck_assert_uint_eq(forgotten(), before);
	ck_assert_ptr_null(store_fatal(&w->store));
	ck_assert_ptr_null(world_apply(w, "y=1", false));
	ck_assert_int_eq(world_tick(w), 0);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	/* Work goes on, and the power is lost before the next checkpoint. */
	ok("y=1");
	cut();
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_ref(w, "y"), '1');
	ok("x=2:1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert_uint_eq(forgotten(), journal_last_lsn(w->store.journal));
}

/* The state directory takes no mark. Then no sync happens, and the disk of the
 * repositories has not failed either. */
TEST(a_sync_that_can_not_be_marked_is_none)
{
	uint64_t before = forgotten();

	ok("x=1");
	memfs_fail_call(w->fs, MEMFS_PWRITE, 1, -ENOSPC);
	ck_assert_int_eq(world_checkpoint(w), -ENOSPC);
	ck_assert_ptr_nonnull(strstr(memfs_hit(w->fs), "syncs"));
	ck_assert_uint_eq(forgotten(), before);
	ok("y=1");
	cut();
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_ref(w, "y"), '1');
}

/* The marker is in a repository whose owner can use up all the room there. The
 * data of other repositories is not affected. */
TEST(no_room_for_the_marker_is_nobodys_failure, .times = 2)
{
	static const int errs[] = { -ENOSPC, -EDQUOT };

	ok("x=1");
	memfs_fail_call(w->fs, MEMFS_PWRITE, 2, errs[_i]);
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert(memfs_was_hit(w->fs));
	ck_assert_uint_eq(forgotten(), journal_last_lsn(w->store.journal));
	ok("y=1");
	cut();
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_ref(w, "y"), '1');
}

/* In older kernels, syncfs returns 0 on a file system that was shut down. */
TEST(a_syncfs_that_lies_is_found_out)
{
	uint64_t before = forgotten();

	ok("x=1");
	/* Twelve calls come before the syncfs: the path of the file system, the
	 * note in the repository (seven calls), the mark of the sync, and the
	 * touch of the marker (two). */
	memfs_die(w->fs, 12, -EIO);
	ck_assert_int_eq(world_checkpoint(w), -EIO);
	ck_assert_ptr_nonnull(strstr(memfs_hit(w->fs), "marker"));
	memfs_fail_none(w->fs);
	ck_assert_uint_eq(forgotten(), before);
}

/* Call N of SQLite's checkpoint, and of the work around it, fails. */
static bool one_tick(unsigned long n, int err, bool by_cut)
{
	unsigned i;
	bool hit;
	char spec[16];

	setup();
	for (i = 0; i < 5; i++) {
		snprintf(spec, sizeof(spec), "r%u=1", i);
		ok(spec);
	}
	memfs_fail(w->fs, n, err);
	world_tick(w);
	hit = memfs_was_hit(w->fs);
	memfs_fail_none(w->fs);
	ck_assert_msg(store_fatal(&w->store) == NULL, "%s: fatal",
	    memfs_hit(w->fs));
	/* After any failure, commits and the next checkpoint succeed. */
	if (w->store.repos.has_failed) {
		world_tick(w);
		ck_assert_int_eq(world_retry(w), 0);
	}
	ok("later=1");
	world_tick(w);
	ok("later=2:1");
	ck_assert_int_eq(world_tick(w), 0);
	if (by_cut)
		cut();
	else
		ck_assert_int_eq(scripted_crash(w), 0);
	for (i = 0; i < 5; i++) {
		snprintf(spec, sizeof(spec), "r%u", i);
		ck_assert_int_eq(world_ref(w, spec), '1');
	}
	ck_assert_int_eq(world_ref(w, "later"), '2');
	teardown();
	return hit;
}

TEST(each_call_of_a_checkpoint_fails, .times = 3, .in = &sweep)
{
	static const int errs[] = { -EIO, -ENOSPC, -EDQUOT };
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		hit = one_tick(n, errs[_i], false);
		one_tick(n, errs[_i], true);
	}
	ck_assert_uint_gt(n, 10);
}

static void disks_come_back(void *unused)
{
	(void)unused;
	memfs_fail_none(w->fs);
}

/* From call N of a checkpoint on, the disks are gone, until the daemon tells
 * that it can't open the journal again. */
static bool flush_without_disks(unsigned long n)
{
	bool hit;

	w = world_new(memfs_new(), true);
	w->mode = REFD_DURABILITY_PERIODIC;
	ck_assert_int_eq(world_start(w), 0);
	w->asked = REFD_DURABILITY_JOURNAL;
	ok("x=1");
	w->asked = REFD_DURABILITY_DEFAULT;
	ok("y=1");
	w->store.cfg.wake = disks_come_back;
	w->store.checkpointer->wal_copied_ns =
	    SYS(w->sys, now_mono) - INT64_C(600) * 1000000000;
	memfs_die(w->fs, n, -EIO);
	checkpointer_once(w->store.checkpointer, true);
	hit = memfs_was_hit(w->fs);
	memfs_fail_none(w->fs);
	cut();
	ck_assert_int_eq(world_ref(w, "x"), '1');
	teardown();
	return hit;
}

/* No file system was synced, although the journal works again. */
TEST(a_checkpoint_without_a_flush_forgets_nothing, .in = &sweep)
{
	unsigned long n = 0;

	while (flush_without_disks(n))
		n++;
	ck_assert_uint_gt(n, 10);
}

/* ---- a sync of the journal ---- */

/* After a failed sync, the frames are on disk or not. The look-up by id tells
 * the outcome, and the ref agrees with it. Waiting clients get an error. */
TEST(a_failed_sync_is_found_out, .times = 2)
{
	struct refd_txid id;
	enum refd_status said;

	ok("x=1");
	memfs_fail_call(w->fs, MEMFS_FDATASYNC, 0, _i ? -ENOSPC : -EIO);
	said = status_of("x=2:1", &id);
	ck_assert(memfs_was_hit(w->fs));
	ck_assert_ptr_null(store_fatal(&w->store));
	ck_assert(said == REFD_OK || said == REFD_IO);
	ck_assert_int_eq(world_ref(w, "x"), said == REFD_OK ? '2' : '1');
	ck_assert_int_eq(asked(&id) == REFD_OK, said == REFD_OK);
	ok("y=1");
	cut();
	ck_assert_int_eq(world_ref(w, "x"), said == REFD_OK ? '2' : '1');
	ck_assert_int_eq(world_ref(w, "y"), '1');
	ck_assert_int_eq(asked(&id) == REFD_OK, said == REFD_OK);
	ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
}

/* From call N of a batch on, the disks are gone. They come back for the next
 * start. If the call was in the journal, the journal cannot be opened again:
 * the answer is unknown, and the daemon has to end. */
static bool disks_die(unsigned long n, bool by_cut, bool *was_fatal,
    bool *was_unknown)
{
	static const char *const specs[] = { "x=2:1", "y=2:0" };
	struct refd_txid ids[2];
	enum refd_status said[2];
	struct txn *txns[2];
	size_t i;
	bool hit;

	setup();
	ok("x=1");
	for (i = 0; i < 2; i++)
		txns[i] = world_begin(w, specs[i], false);
	memfs_die(w->fs, n, -EIO);
	world_batch(w, txns, 2);
	hit = memfs_was_hit(w->fs);
	if (store_fatal(&w->store) != NULL)
		*was_fatal = true;
	for (i = 0; i < 2; i++) {
		said[i] = txns[i]->updates[0].status;
		*was_unknown = *was_unknown || said[i] == REFD_UNKNOWN;
		ids[i] = txns[i]->req.txid;
		world_done(w, txns[i]);
	}
	memfs_fail_none(w->fs);
	if (by_cut)
		cut();
	else
		ck_assert_int_eq(scripted_crash(w), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(world_ref(w, i ? "y" : "x"),
		    asked(&ids[i]) == REFD_OK ? '2' :
			i                     ? '0' :
						'1');
		if (said[i] != REFD_UNKNOWN)
			ck_assert_int_eq(asked(&ids[i]) == REFD_OK,
			    said[i] == REFD_OK);
	}
	ok("z=1");
	teardown();
	return hit;
}

TEST(a_journal_that_is_gone_is_fatal, .times = 2, .in = &sweep)
{
	bool hit = true, was_fatal = false, was_unknown = false;
	unsigned long n;

	for (n = 0; hit; n++)
		hit = disks_die(n, _i == 1, &was_fatal, &was_unknown);
	ck_assert(was_fatal && was_unknown);
}

/* Until the daemon has ended. */
TEST(a_dead_journal_takes_no_row)
{
	uint64_t last;

	ok("x=1");
	last = journal_last_lsn(w->store.journal);
	store_log_failed(&w->store, "is dead");
	ck_assert_int_eq(status_of("x=2:1", NULL), REFD_UNKNOWN);
	ck_assert_uint_eq(journal_last_lsn(w->store.journal), last);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* ---- an abort that cannot be recorded ---- */

static int nr_commits, abort_result;

static int commit_and_take_the_name(void *arg, struct journal_row *rows,
    size_t nr, bool flush)
{
	const struct sys *sys = memfs_other(w->fs);
	int fd;

	if (nr_commits++ > 0)
		return abort_result;
	ck_assert_int_eq(
	    SYS(sys, mkdirat, AT_FDCWD, WORLD_REPO "/refs/heads/x", 0777), 0);
	fd = SYS(sys, openat, AT_FDCWD, WORLD_REPO "/refs/heads/x/y",
	    O_WRONLY | O_CREAT | O_EXCL, 0644);
	ck_assert_int_ge(fd, 0);
	SYS(sys, write_all, fd, "3535353535353535353535353535353535353535\n",
	    41);
	SYS(sys, close, fd);
	return pipeline_commit(((struct world *)arg)->store.pipeline, rows, nr,
	    flush);
}

/* git made x/y during the flush of our x, and the abort record has no room. */
TEST(an_abort_that_is_not_recorded_is_unknown, .times = 2)
{
	struct refd_txid id;

	nr_commits = 0;
	abort_result = _i ? JOURNAL_UNKNOWN : -ENOSPC;
	w->store.pipeline->applier.commit = commit_and_take_the_name;
	ck_assert_int_eq(status_of("x=1:0", &id), REFD_UNKNOWN);
	ck_assert_int_eq(nr_commits, 2);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "x/y"), '5');
	/* A look-up now tells the truth. */
	ck_assert_int_eq(asked(&id), REFD_CONFLICT);
	ok("x/y=2:5");
}

/* ---- a log line that can't be deferred ---- */

/* After the first commit the log of the ref is full, and so is the journal. */
static int commit_then_fill(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	if (nr_commits++ > 0)
		return -ENOSPC;
	memfs_fail_call(w->fs, MEMFS_WRITE_ALL, 0, -ENOSPC);
	return pipeline_commit(((struct world *)arg)->store.pipeline, rows, nr,
	    flush);
}

/* HEAD is a symbolic ref to main: a deletion of main leaves a line there. */
static const struct {
	const char *first, *spec, *name, *log;
	char value, new_c;
} owing[] = {
	{ "x=1", "x=2:1", "x", "x", '2', '2' },
	{ "main=1", "-main:1", "main", "@HEAD", '0', '0' },
};
#define NR_OWING ((int)(sizeof(owing) / sizeof(*owing)))

/* Only the record itself has the line. Therefore the lock stays, the record is
 * not forgotten, and recovery writes the line. */
TEST(a_line_that_can_not_be_deferred_is_left_to_recovery, .times = 2 * NR_OWING)
{
	const char *log = owing[_i / 2].log;
	char new_c = owing[_i / 2].new_c;
	struct refd_txid id;
	uint64_t before;

	ok(owing[_i / 2].first);
	ck_assert_int_eq(world_checkpoint(w), 0);
	before = forgotten();
	nr_commits = 0;
	w->store.pipeline->applier.commit = commit_then_fill;
	ck_assert_int_eq(status_of(owing[_i / 2].spec, &id), REFD_UNKNOWN);
	ck_assert_int_eq(nr_commits, 2);
	ck_assert_ptr_nonnull(strstr(memfs_hit(w->fs), "logs/"));
	ck_assert_int_eq(world_log_count(w, log, '1', new_c), 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert_uint_eq(forgotten(), before);
	if (_i % 2 == 0)
		ck_assert_int_eq(scripted_crash(w), 0);
	else
		cut();
	ck_assert_int_eq(world_ref(w, owing[_i / 2].name), owing[_i / 2].value);
	ck_assert_int_eq(world_log_count(w, log, '1', new_c), 1);
	ck_assert_int_eq(asked(&id), REFD_OK);
	ok("x=3");
}

/* ---- a batch that is too large ---- */

static size_t bytes_max;

static int commit_what_fits(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	size_t i, len = 0;

	for (i = 0; i < nr; i++)
		len += rows[i].len;
	if (len > bytes_max)
		return -ENOSPC;
	return pipeline_commit(((struct world *)arg)->store.pipeline, rows, nr,
	    flush);
}

TEST(what_does_not_fit_fails_alone)
{
	struct txn *txns[3];
	size_t i;

	bytes_max = 500;
	w->store.pipeline->applier.commit = commit_what_fits;
	txns[0] = world_begin(w, "a=1", false);
	txns[1] = world_begin(w,
	    "b1=1;b2=1;b3=1;b4=1;b5=1;b6=1;b7=1;b8=1;b9=1;bb=1", false);
	txns[2] = world_begin(w, "c=1", false);
	world_batch(w, txns, 3);
	ck_assert_int_eq(txns[0]->updates[0].status, REFD_OK);
	for (i = 0; i < txns[1]->nr_updates; i++)
		ck_assert_int_eq(txns[1]->updates[i].status, REFD_NOSPACE);
	ck_assert_int_eq(txns[2]->updates[0].status, REFD_OK);
	for (i = 0; i < 3; i++)
		world_done(w, txns[i]);
	cut();
	ck_assert_int_eq(world_ref(w, "a"), '1');
	ck_assert_int_eq(world_ref(w, "b5"), '0');
	ck_assert_int_eq(world_ref(w, "c"), '1');
}
