/*
 * Proves that scheduler and store agree on the direct way. A transaction that
 * waits at the barrier while the scheduler is paused is not applied before the
 * scheduler is resumed. If it waits for long at the barrier, or before, its
 * objects are checked again. A deletion does not wait for the barrier of a
 * transaction that also deletes. Every outcome agrees with the ref's file,
 * whenever a transaction is cancelled or the scheduler is paused.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/scheduler/state.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/txn_help.h"

#define NR_ROUNDS 300

/* The answers to a request. */
struct answers {
	int nr;
	enum refd_answer_kind kind;
	enum refd_outcome outcome;
};

static struct sys disk;
static _Atomic bool syncs_hang;
static sem_t is_held, let_go;
/* The clock is ahead by so much. */
static _Atomic int64_t ahead_ns;
/* A prune during the next look at the directories of objects. */
static _Atomic bool prunes;
static char pruned[REFD_OID_MAX_HEX + 1];
static struct scheduler *scheduler;

static int disk_syncfs(const struct sys *sys, int fd)
{
	if (syncs_hang) {
		sem_post(&is_held);
		sem_wait(&let_go);
	}
	return sys_kernel.syncfs(sys, fd);
}

static int64_t disk_now_mono(const struct sys *sys)
{
	return sys_kernel.now_mono(sys) + ahead_ns;
}

/* Git removes the object, which takes longer than a check counts. */
static void prune(void)
{
	char path[sizeof(sr_repo) + sizeof(pruned) + 16];

	snprintf(path, sizeof(path), "%s/objects/%.2s/%s", sr_repo, pruned,
	    pruned + 2);
	ck_assert_int_eq(unlink(path), 0);
	ahead_ns += 1200 * 1000000;
}

static int disk_lstatat(const struct sys *sys, int fd, const char *path,
    struct sys_stat *st)
{
	if (strlen(path) == 2 && memcmp(path, pruned, 2) == 0 &&
	    atomic_exchange(&prunes, false)) {
		prune();
		sem_post(&is_held);
	}
	return sys_kernel.lstatat(sys, fd, path, st);
}

static int64_t run(void)
{
	int64_t now_ns = SYS(sr_sys, now_mono);

	scheduler_run(scheduler, now_ns, SYS(sr_sys, now_wall) / 1000000);
	return now_ns;
}

static void answered(void *arg, const struct refd_answer *ans)
{
	struct answers *answers = arg;

	answers->nr++;
	answers->kind = ans->kind;
	answers->outcome = ans->outcome;
}

/* Updates NAME to HEX unless NAME is NULL, and deletes GONE unless GONE is
 * NULL. */
static struct refd_txid submit(const char *name, const char *hex,
    const char *gone, struct answers *answers)
{
	struct refd_update updates[2] = { 0 }, *u = updates;
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.git_dir = sr_repo,
		.umask = 022,
		.updates = updates };

	refd_txid_make(&req.txid);
	if (name != NULL) {
		u->name = name;
		u->action = REFD_UPDATE;
		ck_assert_int_eq(
		    refd_oid_parse(hex, REFD_FORMAT_SHA1, &u->new_oid), 0);
		u++;
	}
	if (gone != NULL) {
		u->name = gone;
		u->action = REFD_DELETE;
		u++;
	}
	req.nr_updates = (size_t)(u - updates);
	scheduler_submit(scheduler, txn_help_own(&req), run(), answered,
	    answers);
	return req.txid;
}

static void await_answer(const struct answers *answers)
{
	while (answers->nr == 0)
		run();
	ck_assert_int_eq(answers->nr, 1);
}

static void expect_committed(const struct answers *answers)
{
	await_answer(answers);
	ck_assert_int_eq(answers->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(answers->outcome, REFD_COMMITTED);
}

/* A first transaction tells the scheduler the number of the repository. */
static void setup(void)
{
	const struct scheduler_config cfg = { .batch_refs = 1000,
		.lock_wait_ns = INT64_C(1000000000),
		.deadline_ns = INT64_C(600000000000),
		.session_ns = INT64_C(600000000000),
		.retention_ms = INT64_C(86400000),
		.max_waiting_bytes = 1 << 20 };
	struct answers answers = { 0 };

	disk = sys_kernel;
	disk.syncfs = disk_syncfs;
	disk.lstatat = disk_lstatat;
	disk.now_mono = disk_now_mono;
	disk.fs_type = sr_other_fs_type;
	syncs_hang = prunes = false;
	ahead_ns = 0;
	sem_init(&is_held, 0, 0);
	sem_init(&let_go, 0, 0);
	sr_sys = &disk;
	sr_interval_ns = INT64_C(3600000000000);
	sr_setup();
	scheduler = scheduler_new(&cfg, sr_store);
	ck_assert_ptr_nonnull(scheduler);
	submit("refs/heads/first", sr_commit, NULL, &answers);
	expect_committed(&answers);
}

static void teardown(void)
{
	while (!scheduler_is_idle(scheduler)) {
		scheduler_drain(scheduler);
		run();
		sched_yield();
	}
	scheduler_free(scheduler);
	sr_teardown();
}

static void await_held(void)
{
	while (sem_trywait(&is_held) != 0)
		run();
}

static void release(void)
{
	int i;

	syncs_hang = false;
	for (i = 0; i < 8; i++)
		sem_post(&let_go);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(a_pause_begins_no_batch)
{
	struct answers answers = { 0 };
	struct scheduler_stats stats;
	char hex[REFD_OID_MAX_HEX + 1];

	sr_make_commit("new", hex);
	syncs_hang = true;
	submit("refs/heads/a", hex, NULL, &answers);
	ck_assert_ptr_nonnull(scheduler->direct.entry);
	await_held();
	scheduler_pause(scheduler);
	release();
	while (scheduler->direct.entry != NULL)
		run();
	scheduler_stats(scheduler, &stats);
	ck_assert_int_eq(answers.nr, 0);
	ck_assert_uint_eq(stats.in_store, 0);
	ck_assert_uint_eq(stats.waiting, 1);
	tmp_run("! git -C r.git rev-parse -q --verify refs/heads/a");
	scheduler_resume(scheduler);
	expect_committed(&answers);
	tmp_run("git -C r.git rev-parse -q --verify refs/heads/a");
}

/* The barrier takes so long that git removes the object meanwhile. */
TEST(a_long_barrier_checks_the_objects_again)
{
	struct answers answers = { 0 };

	sr_make_commit("new", pruned);
	syncs_hang = true;
	submit("refs/heads/a", pruned, NULL, &answers);
	ck_assert_ptr_nonnull(scheduler->direct.entry);
	await_held();
	prune();
	release();
	await_answer(&answers);
	ck_assert_int_ne(answers.outcome, REFD_COMMITTED);
	tmp_run("! git -C r.git rev-parse -q --verify refs/heads/a");
}

/* Admission has read the object, and hangs before a short barrier, or before
 * it finds that the object needs none. */
TEST(a_long_admission_checks_the_objects_again, .times = 2)
{
	struct answers answers = { 0 };

	if (_i == 0)
		sr_make_commit("new", pruned);
	else
		memcpy(pruned, sr_commit, sizeof(pruned));
	prunes = true;
	submit("refs/heads/a", pruned, NULL, &answers);
	ck_assert_ptr_nonnull(scheduler->direct.entry);
	/* A turn that began before would have the former time. */
	sem_wait(&is_held);
	await_answer(&answers);
	ck_assert_int_ne(answers.outcome, REFD_COMMITTED);
	tmp_run("! git -C r.git rev-parse -q --verify refs/heads/a");
}

TEST(deletions_pass_the_barrier)
{
	struct answers both = { 0 }, deletion = { 0 };
	char hex[REFD_OID_MAX_HEX + 1];

	/* By git: the names must not rest after a use by refd. */
	tmp_run("git -C r.git update-ref refs/heads/b %s && "
		"git -C r.git update-ref refs/heads/c %s",
	    sr_commit, sr_commit);
	sr_make_commit("new", hex);
	syncs_hang = true;
	submit("refs/heads/a", hex, "refs/heads/b", &both);
	await_held();
	submit(NULL, NULL, "refs/heads/c", &deletion);
	expect_committed(&deletion);
	ck_assert_int_eq(both.nr, 0);
	release();
	expect_committed(&both);
}

/* At a random time, the transaction is cancelled, or a pause begins and ends,
 * or nothing happens. */
TEST(each_outcome_agrees_with_the_file)
{
	struct refd_request cancel = { .verb = REFD_VERB_CANCEL };
	struct answers answers, cancelled;
	char name[64], path[8192];
	unsigned seed = 7;
	int i, nr_yields;

	for (i = 0; i < NR_ROUNDS; i++) {
		answers = cancelled = (struct answers){ 0 };
		snprintf(name, sizeof(name), "refs/heads/n%d", i);
		cancel.txid = submit(name, sr_commit, NULL, &answers);
		for (nr_yields = rand_r(&seed) % 400; nr_yields > 0;
		    nr_yields--)
			sched_yield();
		switch (rand_r(&seed) % 3) {
		case 0:
			scheduler_cancel(scheduler, &cancel, 0, run(), answered,
			    &cancelled);
			await_answer(&cancelled);
			break;
		case 1:
			scheduler_pause(scheduler);
			run();
			scheduler_resume(scheduler);
			break;
		}
		await_answer(&answers);
		ck_assert_int_eq(answers.kind, REFD_ANSWER_RESULTS);
		snprintf(path, sizeof(path), "%s/%s", sr_repo, name);
		ck_assert_msg((access(path, F_OK) == 0) ==
			(answers.outcome == REFD_COMMITTED),
		    "%s: outcome %d", name, answers.outcome);
	}
}
