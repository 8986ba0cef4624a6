/*
 * Proves that scheduler and store share no data of a transaction held by both:
 * while a committer records the rejection of an answered transaction, the
 * scheduler answers for the transaction again. In the tsan profile a read of
 * the committer's data fails the test.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/scheduler/scheduler.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"

static struct sys disk;
/* Relaxed, so that the flags order nothing between the threads: a lock or a
 * semaphore would hide a race from the sanitizer. */
static atomic_int is_held, let_go;

static struct scheduler *scheduler;
static int nr_answers;
static struct refd_answer last;

/* The row is committed, and the batch is not back yet. */
static int held_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	if (strcmp(newpath, "held") == 0) {
		atomic_store_explicit(&is_held, 1, memory_order_relaxed);
		while (!atomic_load_explicit(&let_go, memory_order_relaxed))
			sched_yield();
	}
	return sys_kernel.renameat(sys, olddirfd, oldpath, newdirfd, newpath);
}

static void setup(void)
{
	const struct scheduler_config cfg = { .batch_refs = 1000,
		.lock_wait_ns = INT64_C(1000000000),
		.deadline_ns = INT64_C(600000000000),
		.session_ns = INT64_C(600000000000),
		.retention_ms = INT64_C(86400000),
		.max_waiting_bytes = 1 << 20 };

	disk = sys_kernel;
	disk.renameat = held_renameat;
	is_held = let_go = nr_answers = 0;
	sr_sys = &disk;
	sr_setup();
	scheduler = scheduler_new(&cfg, sr_store);
	ck_assert_ptr_nonnull(scheduler);
}

static int64_t run(void)
{
	int64_t now_ns = SYS(sr_sys, now_mono);

	scheduler_run(scheduler, now_ns, SYS(sr_sys, now_wall) / 1000000);
	return now_ns;
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

static void answered(void *arg, const struct refd_answer *ans)
{
	(void)arg;
	nr_answers++;
	last = *ans;
}

static void submit(const struct refd_txid *id, const char *name,
    const char *hex)
{
	scheduler_submit(scheduler, sr_make_txn(id, sr_repo, name, hex), run(),
	    answered, NULL);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(a_rejection_is_asked_for_while_it_is_recorded)
{
	static const char absent[] = "1111111111111111111111111111111111111111";
	struct refd_request query = { .verb = REFD_VERB_QUERY };
	struct refd_txid id;

	refd_txid_make(&query.txid);
	submit(&query.txid, "refs/heads/absent", absent);
	while (nr_answers == 0)
		run();
	ck_assert_int_eq(last.outcome, REFD_REJECTED);
	refd_txid_make(&id);
	submit(&id, "refs/heads/held", sr_commit);
	while (!atomic_load_explicit(&is_held, memory_order_relaxed))
		run();
	scheduler_query(scheduler, &query, 0, 0, answered, NULL);
	ck_assert_int_eq(nr_answers, 2);
	ck_assert_int_eq(last.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(last.outcome, REFD_REJECTED);
	atomic_store_explicit(&let_go, 1, memory_order_relaxed);
	while (nr_answers == 2)
		run();
	ck_assert_int_eq(last.outcome, REFD_COMMITTED);
	ck_assert_uint_gt(last.lsn, 0);
}

/* The later transactions go the direct way: the store admits and applies every
 * transaction while the scheduler holds its names. */
TEST(one_after_the_other)
{
	struct refd_txid id;
	char name[32];
	int i;

	for (i = 0; i < 20; i++) {
		refd_txid_make(&id);
		snprintf(name, sizeof(name), "refs/heads/n%d", i);
		submit(&id, name, sr_commit);
		while (nr_answers == i)
			run();
		ck_assert_int_eq(last.outcome, REFD_COMMITTED);
		ck_assert_uint_gt(last.lsn, 0);
	}
}
