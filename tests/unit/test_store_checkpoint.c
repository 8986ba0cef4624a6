/*
 * Proves the work of the checkpoint, with a real repository and all threads.
 * During its syncfs, refs are committed and answered. A requested checkpoint
 * comes back when all earlier answers need no replay, according to the journal
 * on disk, and not before. The record of an unpublished ref is not forgotten.
 * After a failed sync the reason is reported and no record is forgotten. A stop
 * leaves nothing to replay. Many updates begin a round before its time, but not
 * soon after a long round.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static const char zeroes[] = "0000000000000000000000000000000000000000";
static const char ref_a[] = "refs/heads/a";

/* ---- the disk ---- */

static struct sys disk;
static _Atomic bool holds;   /* a syncfs waits for the test */
static _Atomic bool holds_b; /* so does the publishing of refs/heads/b */
static sem_t is_held, let_go;
static _Atomic int syncfs_fails, marker_fails;
static _Atomic int64_t ahead_ns; /* offset of the clock */

static int disk_syncfs(const struct sys *sys, int fd)
{
	if (syncfs_fails < 0)
		return syncfs_fails;
	if (holds) {
		sem_post(&is_held);
		sem_wait(&let_go);
	}
	return sys_kernel.syncfs(sys, fd);
}

static int disk_fsync(const struct sys *sys, int fd)
{
	char path[4096];

	if (marker_fails < 0 &&
	    sys_kernel.fd_path(sys, fd, path, sizeof(path)) == 0 &&
	    strstr(path, "/refd/marker") != NULL)
		return marker_fails;
	return sys_kernel.fsync(sys, fd);
}

static int disk_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	if (holds_b && strcmp(newpath, "b") == 0) {
		sem_post(&is_held);
		sem_wait(&let_go);
	}
	return sys_kernel.renameat(sys, olddirfd, oldpath, newdirfd, newpath);
}

static int64_t disk_now_mono(const struct sys *sys)
{
	return sys_kernel.now_mono(sys) + ahead_ns;
}

static void setup_interval(int64_t seconds)
{
	disk = sys_kernel;
	disk.now_mono = disk_now_mono;
	ahead_ns = 0;
	disk.syncfs = disk_syncfs;
	disk.fs_type = sr_other_fs_type;
	disk.fsync = disk_fsync;
	disk.renameat = disk_renameat;
	holds = holds_b = false;
	syncfs_fails = marker_fails = 0;
	sem_init(&is_held, 0, 0);
	sem_init(&let_go, 0, 0);
	sr_sys = &disk;
	sr_interval_ns = seconds * 1000000000;
	sr_setup();
}

/* Regular checkpoints would disturb the tests. */
static void setup(void)
{
	setup_interval(3600);
}

/* Many updates begin a round after a twentieth. */
static void setup_many(void)
{
	setup_interval(40);
}

static void teardown(void)
{
	sr_teardown();
}

/* ---- work in the repository ---- */

static struct txn *admit(const char *name, const char *hex)
{
	struct refd_txid id;

	refd_txid_make(&id);
	return sr_admit(&id, sr_repo, name, hex);
}

static void update(const char *name, const char *hex)
{
	struct txn *txn = admit(name, hex);

	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
}

static void wait_for_checkpoint(struct store_question *cp)
{
	struct store_done done = sr_wait_done();

	ck_assert_ptr_eq(done.answered, cp);
}

static uint64_t told_lsn(const struct store_question *cp)
{
	ck_assert_int_eq(cp->answer.kind, REFD_ANSWER_PAIRS);
	ck_assert_str_eq(cp->answer.pairs[0].key, "lsn");
	return strtoull(cp->answer.pairs[0].value, NULL, 10);
}

static uint64_t last_lsn(void)
{
	struct store_stats stats;

	store_stats(sr_store, &stats);
	return stats.last_lsn;
}

static uint64_t forgotten_lsn(void)
{
	struct store_stats stats;

	store_stats(sr_store, &stats);
	return stats.forgotten_lsn;
}

/* ---- tests ---- */

CASE(.name = "checkpoint", .setup = setup, .teardown = teardown, .seconds = 60);

/* A deletion needs no object, and therefore no syncfs of its own. */
TEST(a_commit_does_not_wait_for_it)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };
	struct store_done done;
	uint64_t asked;

	update(ref_a, sr_commit);
	update("refs/heads/b", sr_commit);
	holds = true;
	asked = last_lsn();
	store_ask(sr_store, &cp);
	sem_wait(&is_held);
	update(ref_a, zeroes);
	ck_assert_uint_gt(last_lsn(), asked);
	ck_assert(!store_reap(sr_store, &done));
	holds = false;
	sem_post(&let_go);
	wait_for_checkpoint(&cp);
	ck_assert_int_eq(cp.answer.kind, REFD_ANSWER_PAIRS);
	ck_assert_uint_ge(told_lsn(&cp), asked);
}

/* The rounds forget only the record before. */
TEST(what_is_not_published_is_not_forgotten)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };
	struct store_done done[2];
	uint64_t before;
	struct txn *txn;
	int i;

	update(ref_a, sr_commit);
	before = last_lsn();
	txn = admit("refs/heads/b", sr_commit);
	holds_b = true;
	store_apply(sr_store, sr_make_batch(txn));
	sem_wait(&is_held);
	ck_assert_uint_gt(last_lsn(), before);
	store_ask(sr_store, &cp);
	while (forgotten_lsn() < before)
		poll(NULL, 0, 1);
	ck_assert_uint_eq(forgotten_lsn(), before);
	holds_b = false;
	sem_post(&let_go);
	for (i = 0; i < 2; i++)
		done[i] = sr_wait_done();
	batch_free(done[done[0].applied == NULL].applied);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
	ck_assert_int_eq(cp.answer.kind, REFD_ANSWER_PAIRS);
	ck_assert_uint_gt(told_lsn(&cp), before);
}

/* A copy of the state that is made now has nothing to replay: a second store on
 * a copy proves this. */
TEST(it_is_on_the_disk_when_it_comes_back)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };
	uint64_t last;

	update(ref_a, sr_commit);
	last = last_lsn();
	store_ask(sr_store, &cp);
	wait_for_checkpoint(&cp);
	ck_assert_int_eq(cp.answer.kind, REFD_ANSWER_PAIRS);
	ck_assert_uint_eq(told_lsn(&cp), last);
	sr_close_crashed();
	sr_open();
	ck_assert_uint_eq(forgotten_lsn(), last);
	ck_assert_uint_eq(sr_found_count, 0);
}

static void checkpoint(void)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };

	store_ask(sr_store, &cp);
	wait_for_checkpoint(&cp);
	ck_assert_int_eq(cp.answer.kind, REFD_ANSWER_PAIRS);
}

static uint64_t wal_bytes(void)
{
	struct store_stats stats;

	store_stats(sr_store, &stats);
	return stats.wal_bytes;
}

/* Shown by a change of the journal's database. */
static void assert_copies(bool copies, const char *when)
{
	char *before = tmp_output("sha256sum state/journal.db"), *after;

	checkpoint();
	after = tmp_output("sha256sum state/journal.db");
	ck_assert_msg((strcmp(before, after) != 0) == copies, "%s", when);
	free(before);
	free(after);
}

static void change_until(uint64_t bytes)
{
	static bool is_there = true;

	while (wal_bytes() < bytes) {
		update(ref_a, is_there ? zeroes : sr_commit);
		is_there = !is_there;
	}
}

TEST(the_wal_is_copied_when_it_has_2_mib_or_after_ten_minutes)
{
	const uint64_t limit = 2 << 20, few = 65536;
	int view;

	update(ref_a, sr_commit);
	assert_copies(true, "a new repository");
	change_until(few);
	assert_copies(false, "at once");
	ahead_ns += INT64_C(500) * 1000000000;
	change_until(2 * few);
	assert_copies(false, "before ten minutes");
	ahead_ns += INT64_C(100) * 1000000000;
	view = openat(tmp_fd, "state/journal.db-wal", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(flock(view, LOCK_EX | LOCK_NB), 0);
	assert_copies(false, "while a view reads");
	close(view);
	assert_copies(true, "after ten minutes");
	update("refs/heads/b", sr_commit);
	assert_copies(false, "again");
	change_until(limit - few);
	assert_copies(false, "before 2 MiB");
	change_until(limit);
	assert_copies(true, "with 2 MiB");
}

static void fails_with(_Atomic int *what, const char *words)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };
	uint64_t before;

	update(ref_a, sr_commit);
	*what = -EIO;
	update(ref_a, zeroes);
	before = last_lsn();
	store_ask(sr_store, &cp);
	wait_for_checkpoint(&cp);
	ck_assert_int_eq(cp.answer.status, REFD_IO);
	ck_assert_ptr_nonnull(strstr(cp.why, words));
	ck_assert_ptr_nonnull(strstr(cp.why, sr_repo));
	free(cp.why);
	/* The same again after a repair of the disk. */
	*what = 0;
	do {
		/* Until another thread has redone the records. */
		cp = (struct store_question){ .kind = STORE_ASK_CHECKPOINT };
		store_ask(sr_store, &cp);
		wait_for_checkpoint(&cp);
		free(cp.why);
	} while (cp.answer.status == REFD_IO);
	ck_assert_int_eq(cp.answer.kind, REFD_ANSWER_PAIRS);
	ck_assert_uint_ge(told_lsn(&cp), before);
}

TEST(a_failed_syncfs)
{
	fails_with(&syncfs_fails, "can't sync the file system");
}

TEST(a_file_system_that_only_says_yes)
{
	fails_with(&marker_fails, strerror(EIO));
}

/* The note of the checkpoint exists before any answer, and does not come back:
 * otherwise rm -rf would find the directory not empty. */
TEST(a_repository_may_be_removed_once_it_was_answered)
{
	static const char note[] = "r.git/refd/checkpoint";

	update(ref_a, sr_commit);
	ck_assert_int_eq(unlinkat(tmp_fd, note, 0), 0);
	update(ref_a, zeroes);
	checkpoint();
	ck_assert_int_eq(faccessat(tmp_fd, note, F_OK, 0), -1);
	/* The next opening makes the note. */
	sr_close();
	sr_open();
	update(ref_a, sr_commit);
	ck_assert_int_eq(faccessat(tmp_fd, note, F_OK, 0), 0);
}

static void assert_note(uint64_t since, uint64_t lsn)
{
	char *note = tmp_get("r.git/refd/checkpoint"), want[80];

	snprintf(want, sizeof(want), " since %020llu\nlsn %020llu\n",
	    (unsigned long long)since, (unsigned long long)lsn);
	ck_assert_pstr_eq(strstr(note, " since "), want);
	free(note);
}

/* The directory may be a copy from another machine, so the note tells since
 * when this journal writes there: since the opening, or since a checkpoint that
 * found the note of another journal. */
TEST(a_note_tells_since_when_its_journal_writes)
{
	static const char others[] =
	    "journal 00112233445566778899aabbccddeeff "
	    "since 00000000000000000007\nlsn 00000000000000000009\n";
	uint64_t last;

	update(ref_a, sr_commit);
	assert_note(0, 0);
	checkpoint();
	assert_note(0, last_lsn());
	tmp_put("r.git/refd/checkpoint", others);
	update(ref_a, zeroes);
	checkpoint();
	assert_note(last_lsn(), last_lsn());
	last = last_lsn();
	/* A later opening keeps the note. */
	sr_close();
	sr_open();
	update(ref_a, sr_commit);
	assert_note(last, last);
	sr_close();
	tmp_put("r.git/refd/checkpoint", others);
	sr_open();
	ck_assert_uint_gt(last_lsn(), last);
	last = last_lsn();
	update(ref_a, zeroes);
	assert_note(last, last);
	checkpoint();
	assert_note(last, last_lsn());
}

TEST(a_stop_leaves_nothing)
{
	uint64_t last;

	update(ref_a, sr_commit);
	update(ref_a, zeroes);
	last = last_lsn();
	sr_close();
	sr_open();
	ck_assert_uint_eq(last_lsn(), last);
	ck_assert_uint_eq(forgotten_lsn(), last);
	ck_assert_uint_eq(sr_found_count, 0);
}

/* ---- many updates ---- */

/* As in checkpointer.c. */
#define MANY_UPDATES 256

static uint64_t checkpoints(void)
{
	struct store_stats stats;

	store_stats(sr_store, &stats);
	return stats.checkpoints;
}

static void update_many(int first, int nr)
{
	char name[64];
	int i;

	for (i = first; i < first + nr; i++) {
		snprintf(name, sizeof(name), "refs/heads/many%d", i);
		update(name, sr_commit);
	}
}

static void wait_for_round(uint64_t nr)
{
	int i;

	for (i = 0; i < 1000 && checkpoints() < nr; i++)
		usleep(10000);
	ck_assert_uint_eq(checkpoints(), nr);
}

CASE(.name = "many updates", .setup = setup_many, .teardown = teardown,
    .seconds = 60);

TEST(many_updates_begin_a_round)
{
	uint64_t before = checkpoints();

	update_many(0, MANY_UPDATES - 1);
	ck_assert_uint_eq(checkpoints(), before);
	update_many(MANY_UPDATES - 1, 1);
	wait_for_round(before + 1);
}

/* After a long round, many updates must wait. */
TEST(many_updates_wait_after_a_long_round)
{
	uint64_t before = checkpoints();

	/* The barrier calls syncfs too, until the objects and the id of the
	 * repository are older than the last syncfs. */
	update(ref_a, sr_commit);
	usleep(150000);
	update("refs/heads/warm", sr_commit);
	holds = true;
	update_many(0, MANY_UPDATES);
	sr_await(&is_held);
	ahead_ns = INT64_C(1000) * 1000000000;
	holds = false;
	sem_post(&let_go);
	wait_for_round(before + 1);
	update_many(MANY_UPDATES, MANY_UPDATES);
	usleep(50000);
	ck_assert_uint_eq(checkpoints(), before + 1);
}
