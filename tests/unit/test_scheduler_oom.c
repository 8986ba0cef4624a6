/*
 * Proves that the scheduler survives a failure of any allocation. Every request
 * is answered once, and nothing is lost or leaked. When there is memory again,
 * all work goes on. Lack of memory means the answer busy, or a slightly later
 * batch.
 *
 * The files with allocations are compiled into this program a second time, over
 * an allocator that fails on demand.
 */
#include <stdbool.h>
#include <stdlib.h>

static long allocations, fail_at = -1, fail_nr;

static void *test_malloc(size_t size);
static void *test_calloc(size_t nr, size_t size);
static void *test_realloc(void *p, size_t size);

#define malloc  test_malloc
#define calloc  test_calloc
#define realloc test_realloc
#include "daemon/scheduler/ask.c"
#include "daemon/scheduler/batch.c"
#include "daemon/scheduler/fairness.c"
#include "daemon/scheduler/ref_queue.c"
#include "daemon/scheduler/scheduler.c"
#include "daemon/scheduler/table.c"
#include "daemon/scheduler/waiter.c"
#undef malloc
#undef calloc
#undef realloc

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

/* From number FAIL_AT on, FAIL_NR allocations fail. */
static bool may_allocate(void)
{
	long n = allocations++;

	return fail_at < 0 || n < fail_at || n >= fail_at + fail_nr;
}

static void *test_malloc(size_t size)
{
	return may_allocate() ? malloc(size) : NULL;
}

static void *test_calloc(size_t nr, size_t size)
{
	return may_allocate() ? calloc(nr, size) : NULL;
}

static void *test_realloc(void *p, size_t size)
{
	return may_allocate() ? realloc(p, size) : NULL;
}

static void load(void)
{
	static struct rig_client client;
	const struct rig_txn txns[] = {
		{ RIG_NAMES("refs/heads/a", "refs/heads/a/b") },
		{ RIG_NAMES("refs/heads/a"), .repo = 1 },
		{ .atomic = true, RIG_NAMES("refs/heads/b", "refs/x", "HEAD") },
		{ .atomic = true, RIG_NAMES("refs/heads/a", "refs/x") },
		{ .session = true, .client = &client, RIG_NAMES("refs/s") },
		{ .session = true, .client = &client, RIG_NAMES("refs/t") },
	};
	struct rig_txn again = txns[0];
	struct scheduler_stats stats;
	size_t i;

	for (i = 0; i < sizeof(txns) / sizeof(txns[0]); i++)
		rig_submit(&txns[i]);
	again.id = 1;
	rig_submit(&again);
	rig_go_many(2, false, "refs/heads/", 60);
	rig_query(0, 4711, 0);
	rig_query(0, 1, 0);
	if (rig_lookups != NULL)
		rig_found(rig_lookups, false);
	if (rig_batches != NULL && rig_find(rig_batches, "refs/x") != NULL)
		txn_decide(rig_find(rig_batches, "refs/x"), REFD_STALE, NULL);
	for (i = 0; i < 80; i++) {
		if (rig_admissions != NULL)
			rig_admit_all();
		if (rig_batches != NULL)
			rig_back_all();
		/* Without memory for the commit, the session stays prepared. */
		rig_commit(0, 5);
		if (rig_lookups != NULL)
			rig_found(rig_lookups, false);
		/* The scheduler gives the time of its next try. */
		if (rig_next - rig_now < 1000 * RIG_MS)
			rig_pass(rig_next - rig_now);
	}
	rig_forget(&client);
	rig_back_all();
	scheduler_stats(rig_scheduler, &stats);
	ck_assert_uint_eq(stats.waiting + stats.in_store + stats.prepared, 0);
}

/* True: the failure happened. */
static bool run_once(long at, long nr)
{
	static const struct rig_config cfg = { .committers = 2,
		.batch_refs = 20,
		.max_bytes = 1000000 };
	struct rig_ask *ask;
	long start;

	fail_at = -1;
	rig_setup(&cfg);
	start = allocations;
	fail_at = start + at;
	fail_nr = nr;
	load();
	start = allocations - start;
	fail_at = -1;
	ask = rig_go_one("refs/heads/a");
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	rig_teardown();
	return start > at;
}

CASE(.seconds = 60);

/* A single allocation fails, or several in a row. */
TEST(test_every_allocation_fails_once, .times = 3)
{
	static const long in_a_row[] = { 1, 3, 50 };
	long at = 0;

	while (run_once(at, in_a_row[_i]))
		at += (long)sweep_step();
	ck_assert_int_gt(at, 100);
}

TEST(test_no_scheduler_without_memory)
{
	static const struct scheduler_config cfg = { .batch_refs = 1 };
	static const struct rig_config rig = { .batch_refs = 1,
		.committers = 1 };

	fail_at = -1;
	rig_setup(&rig);
	rig_teardown();
	fail_at = allocations;
	fail_nr = 1;
	ck_assert_ptr_null(scheduler_new(&cfg, NULL));
	scheduler_free(NULL);
}
