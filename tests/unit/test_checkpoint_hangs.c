/*
 * Proves that a hanging sync of a file system delays no other file system. Refs
 * on other file systems are synced in every round. No record is forgotten that
 * the hanging file system may need, and the stall names its directory. Once the
 * sync comes back, all records are forgotten. Meanwhile the checkpointer waits
 * without spinning, and no round counts as done. A stop waits for the sync and
 * leaves nothing to replay. A status or a reload may come at any moment, also
 * during a stop.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define WAIT_S 30

static const char zeroes[] = "0000000000000000000000000000000000000000";

static struct sys disk;
static _Atomic bool holds, counts;
static _Atomic unsigned rounds;
static sem_t is_held, let_go, is_synced;

static int disk_syncfs(const struct sys *sys, int fd)
{
	if (sr_is_on_other(sys, fd) && holds) {
		sem_post(&is_held);
		sem_wait(&let_go);
	} else if (counts) {
		sem_post(&is_synced);
	}
	return sys_kernel.syncfs(sys, fd);
}

/* A round ends with a look at the journal's size. */
static int disk_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	if (strcmp(path, "journal.db") == 0)
		rounds++;
	return sys_kernel.lstatat(sys, dirfd, path, st);
}

static void setup(enum refd_durability mode)
{
	disk = sys_kernel;
	disk.lstatat = disk_lstatat;
	disk.mount_id = sr_disk_mount_id;
	disk.syncfs = disk_syncfs;
	disk.fs_type = sr_other_fs_type;
	holds = counts = false;
	sem_init(&is_held, 0, 0);
	sem_init(&let_go, 0, 0);
	sem_init(&is_synced, 0, 0);
	sr_sys = &disk;
	sr_mode = mode;
	sr_setup();
	sr_make_other();
}

static void setup_journal(void)
{
	setup(REFD_DURABILITY_JOURNAL);
}

static void setup_none(void)
{
	setup(REFD_DURABILITY_NONE);
}

static void update_as(enum refd_durability mode, const char *repo,
    const char *name, const char *hex)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_make_txn(&id, repo, name, hex);
	txn->req.durability = mode;
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
}

static void update(const char *repo, const char *name, const char *hex)
{
	update_as(REFD_DURABILITY_JOURNAL, repo, name, hex);
}

static struct store_stats stats(void)
{
	struct store_stats now;

	store_stats(sr_store, &now);
	return now;
}

static bool is_forgotten(uint64_t lsn)
{
	return stats().forgotten_lsn >= lsn;
}

static void wait_until_forgotten(uint64_t lsn)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	int i;

	for (i = 0; i < WAIT_S * 200 && !is_forgotten(lsn); i++)
		nanosleep(&pause, NULL);
	ck_assert(is_forgotten(lsn));
}

static void it_is_told_where(const char *path)
{
	struct store_progress progress[STORE_STAGES], *p;

	store_progress(sr_store, 0, progress);
	p = &progress[STORE_STAGE_CHECKPOINT];
	ck_assert_uint_ge(p->nr_stuck, 1);
	ck_assert_ptr_nonnull(strstr(p->path, path));
}

static struct suite_case journal = { .name = "journal",
	.setup = setup_journal,
	.teardown = sr_teardown,
	.seconds = 4 * WAIT_S };

CASE(.name = "none", .setup = setup_none, .teardown = sr_teardown,
    .seconds = 4 * WAIT_S, .also = &journal);

TEST(the_others_are_synced, .in = &journal)
{
	static const char *const names[] = { "refs/heads/a", "refs/heads/b",
		"refs/heads/c" };
	uint64_t held, last;
	size_t i;

	for (i = 0; i < 3; i++)
		update(sr_repo, names[i], sr_commit);
	update(sr_other, names[0], sr_commit);
	wait_until_forgotten(stats().last_lsn);
	holds = true;
	/* A deletion needs no object, and therefore no sync before its
	 * commit. */
	update(sr_other, names[0], zeroes);
	held = stats().last_lsn;
	sr_await(&is_held);
	counts = true;
	for (i = 0; i < 3; i++) {
		update(sr_repo, names[i], zeroes);
		sr_await(&is_synced);
	}
	ck_assert(!is_forgotten(held));
	it_is_told_where("/other/");
	last = stats().last_lsn;
	holds = false;
	sem_post(&let_go);
	wait_until_forgotten(last);
}

/* As the checkpointer of mode none would: a durable update came, and its sync
 * hangs. */
static void hang(void)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };

	update(sr_other, "refs/heads/a", sr_commit);
	update(sr_other, "refs/heads/b", sr_commit);
	store_ask(sr_store, &cp);
	ck_assert_ptr_eq(sr_wait_done().answered, &cp);
	ck_assert_int_eq(cp.answer.kind, REFD_ANSWER_PAIRS);
	holds = true;
	update(sr_other, "refs/heads/a", zeroes);
	sr_await(&is_held);
}

static void let_it_go(void)
{
	holds = false;
	sem_post(&let_go);
}

TEST(it_does_not_spin)
{
	const struct timespec pause = { .tv_nsec = 500000000 };
	unsigned before;
	uint64_t done;

	hang();
	done = stats().checkpoints;
	before = rounds;
	nanosleep(&pause, NULL);
	/* A round takes twenty milliseconds if nothing delays the
	 * checkpointer. */
	ck_assert_uint_le(rounds - before, 40);
	ck_assert_uint_eq(stats().checkpoints, done);
	let_it_go();
}

static void *let_go_later(void *arg)
{
	const struct timespec pause = { .tv_nsec = 200000000 };

	nanosleep(&pause, NULL);
	let_it_go();
	return arg;
}

TEST(a_stop_waits_and_leaves_nothing)
{
	uint64_t last;
	pthread_t later;

	hang();
	/* A store of mode none promises nothing, so no round begins. */
	update_as(REFD_DURABILITY_NONE, sr_other, "refs/heads/b", zeroes);
	last = stats().last_lsn;
	ck_assert_int_eq(pthread_create(&later, NULL, let_go_later, NULL), 0);
	sr_close();
	pthread_join(later, NULL);
	sr_open();
	ck_assert_uint_eq(stats().last_lsn, last);
	ck_assert(is_forgotten(last));
	ck_assert_uint_eq(sr_found_count, 0);
}

static _Atomic bool is_asked;

static void *ask_and_reload(void *arg)
{
	struct store_progress progress[STORE_STAGES];
	int64_t ns = sr_interval_ns;

	while (is_asked) {
		store_progress(sr_store, 0, progress);
		sr_set(ns);
		ns ^= 1;
	}
	return arg;
}

/* The sanitizers find more here than the assertions. */
TEST(a_status_and_a_reload_meet_no_change)
{
	pthread_t asks;
	int i;

	is_asked = true;
	ck_assert_int_eq(pthread_create(&asks, NULL, ask_and_reload, NULL), 0);
	for (i = 0; i < 20; i++) {
		update(sr_repo, "refs/heads/a", i % 2 ? zeroes : sr_commit);
		update(sr_other, "refs/heads/a", i % 2 ? zeroes : sr_commit);
	}
	ck_assert_int_eq(store_stop(sr_store), 0);
	ck_assert(is_forgotten(stats().last_lsn));
	is_asked = false;
	pthread_join(asks, NULL);
}
