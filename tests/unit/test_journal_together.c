/*
 * Proves how commits share flushes. Commits that arrive during a flush are
 * written meanwhile. At most seven more flushes begin, and then one flush is
 * enough for all the rest. A commit whose rows were written before a flush
 * began waits for that flush. Every commit has its own rows and numbers.
 *
 * If a second flush ends first, its callers wait for the first flush, and they
 * fail if the first flush failed. If a group of commits is impossible as a
 * whole, the journal tries every commit alone, and only the commit that is too
 * large fails. After a failed sync, the result is unknown for all commits whose
 * rows the sync covered.
 *
 * The test uses a real disk. The first sync is held until the other callers
 * wait.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/sysvfs.h"
#include "tests/lib/tmp.h"

#define FLUSHES 8 /* at a time */
#define OTHERS  24
#define SMALL   100
#define LARGE   (4 * 1024 * 1024)

static struct sys sys;
static struct sysvfs *vfs;
static struct journal *j;
static atomic_int syncs;          /* since the last reset to 0 */
static atomic_int holds;          /* number of the sync; 0: no sync */
static atomic_bool held, let_go;  /* a sync is held; it may go on */
static atomic_int fails;          /* number of the sync; 0: no sync */
static atomic_bool go_on_failing; /* later syncs fail too */
static atomic_llong full_after;   /* no file gets longer */

static int held_fdatasync(const struct sys *self, int fd)
{
	int nr = atomic_fetch_add(&syncs, 1) + 1;

	(void)self;
	if (nr == atomic_load(&holds)) {
		atomic_store(&held, true);
		while (!atomic_load(&let_go))
			sched_yield();
	}
	if (nr == atomic_load(&fails) ||
	    (atomic_load(&go_on_failing) && nr > atomic_load(&fails)))
		return -EIO;
	return sys_kernel.fdatasync(&sys_kernel, fd);
}

static ssize_t bounded_pwrite(const struct sys *self, int fd, const void *buf,
    size_t len, int64_t offset)
{
	(void)self;
	if (offset + (int64_t)len > atomic_load(&full_after))
		return -ENOSPC;
	return sys_kernel.pwrite(&sys_kernel, fd, buf, len, offset);
}

static void setup(void)
{
	tmp_setup();
	sys = sys_kernel;
	sys.fdatasync = held_fdatasync;
	sys.pwrite = bounded_pwrite;
	atomic_store(&full_after, INT64_MAX);
	vfs = sysvfs_new("held", &sys);
	j = help_open(&sys, tmp_root, "held");
}

static void teardown(void)
{
	journal_close(j);
	sysvfs_free(vfs);
	tmp_teardown();
}

struct caller {
	pthread_t thread;
	unsigned row;
	size_t bytes;
	atomic_bool is_over;
	int r;
};

static void *commit_one(void *arg)
{
	struct caller *c = arg;

	c->r = help_commit(j, c->row, 1, c->bytes);
	atomic_store(&c->is_over, true);
	return NULL;
}

static void begin(struct caller *c, unsigned row, size_t bytes)
{
	c->row = row;
	c->bytes = bytes;
	atomic_store(&c->is_over, false);
	ck_assert_int_eq(pthread_create(&c->thread, NULL, commit_one, c), 0);
}

static int end(struct caller *c)
{
	pthread_join(c->thread, NULL);
	return c->r;
}

static void wait_for(atomic_bool *it)
{
	while (!atomic_load(it))
		sched_yield();
}

/* Holds the next sync. FAIL is the number of the sync that fails, 0 for no
 * failure. A commit comes before it, so that the WAL does not begin a new round
 * during the test. A new round costs a sync. */
static void hold_next(int fail)
{
	ck_assert_int_eq(help_commit(j, 50, 1, SMALL), 0);
	atomic_store(&syncs, 0);
	atomic_store(&held, false);
	atomic_store(&let_go, false);
	atomic_store(&fails, fail);
	atomic_store(&holds, 1);
}

/* The first caller stays in its sync until all others are written. The others
 * wait for this sync; one of them waits for a sync of its own, if a second sync
 * began. Callers in line for a write count as waiting, because writes come
 * first. */
static void all_at_once(struct caller callers[1 + OTHERS])
{
	uint64_t last = journal_last_lsn(j) + 1 + OTHERS;
	struct journal_stats stats;
	unsigned i;

	begin(&callers[0], 0, SMALL);
	wait_for(&held);
	for (i = 1; i < 1 + OTHERS; i++)
		begin(&callers[i], i, SMALL);
	while (journal_last_lsn(j) < last)
		sched_yield();
	do {
		sched_yield();
		journal_stats(j, &stats);
	} while (stats.waiting < OTHERS);
	for (i = 0; i < 1 + OTHERS; i++)
		ck_assert(!atomic_load(&callers[i].is_over));
	atomic_store(&let_go, true);
	for (i = 0; i < 1 + OTHERS; i++)
		end(&callers[i]);
}

CASE(.setup = setup, .teardown = teardown);

TEST(few_flushes_for_all_that_wait)
{
	struct caller callers[1 + OTHERS];
	struct journal_stats before, after;
	bool seen[1 + OTHERS] = { false };
	unsigned i;

	hold_next(0);
	journal_stats(j, &before);
	all_at_once(callers);
	journal_stats(j, &after);
	ck_assert_uint_le(after.commits, before.commits + 1 + OTHERS);
	/* The held flush, the flushes beside, and one flush for all others. */
	ck_assert_uint_ge(after.flushes, before.flushes + 2);
	ck_assert_uint_le(after.flushes, before.flushes + FLUSHES + 1);
	ck_assert_uint_eq(after.waiting, 0);
	/* help_scan() checks that numbers ascend. */
	ck_assert_uint_eq(help_scan(j, seen, 1 + OTHERS), 2 + OTHERS);
	for (i = 0; i < 1 + OTHERS; i++)
		ck_assert(callers[i].r == 0 && seen[i]);
	ck_assert_uint_eq(journal_last_lsn(j), journal_durable_lsn(j));
}

TEST(eight_flushes_at_a_time)
{
	struct caller callers[FLUSHES + 1];
	struct journal_stats stats;
	int i, nr;

	hold_next(0);
	for (i = 0; i <= FLUSHES; i++) {
		begin(&callers[i], (unsigned)i, SMALL);
		/* Each flush after the first waits for the first. The last
		 * caller waits for a flush that may begin. */
		do {
			sched_yield();
			nr = atomic_load(&syncs);
			journal_stats(j, &stats);
		} while (
		    nr < FLUSHES && (nr <= i || stats.waiting < (size_t)i));
	}
	while (stats.waiting < FLUSHES) {
		sched_yield();
		journal_stats(j, &stats);
	}
	ck_assert_int_eq(atomic_load(&syncs), FLUSHES);
	for (i = 0; i <= FLUSHES; i++)
		ck_assert(!atomic_load(&callers[i].is_over));
	atomic_store(&let_go, true);
	for (i = 0; i <= FLUSHES; i++)
		ck_assert_int_eq(end(&callers[i]), 0);
	ck_assert_int_eq(atomic_load(&syncs), FLUSHES + 1);
}

/* The second sync is over first, and no caller is told. */
static void second_first(struct caller *first, struct caller *second, int fail)
{
	struct journal_stats stats;
	int nr;

	hold_next(fail);
	begin(first, 0, SMALL);
	wait_for(&held);
	begin(second, 1, SMALL);
	/* The second flush waits for the first flush: before its own sync, and
	 * then after it. */
	do {
		sched_yield();
		nr = atomic_load(&syncs);
		journal_stats(j, &stats);
	} while (nr < 2 || stats.waiting < 1);
	ck_assert(!atomic_load(&first->is_over));
	ck_assert(!atomic_load(&second->is_over));
	ck_assert_uint_lt(journal_durable_lsn(j), journal_last_lsn(j) - 1);
	atomic_store(&let_go, true);
	end(first);
	end(second);
}

TEST(a_flush_waits_for_the_one_before)
{
	struct caller first, second;

	second_first(&first, &second, 0);
	ck_assert(first.r == 0 && second.r == 0);
	ck_assert_uint_eq(journal_last_lsn(j), journal_durable_lsn(j));
}

TEST(a_flush_beside_a_failed_one_says_nothing)
{
	struct caller first, second;

	second_first(&first, &second, 1);
	ck_assert_int_eq(first.r, JOURNAL_UNKNOWN);
	ck_assert_int_eq(second.r, JOURNAL_UNKNOWN);
	ck_assert_int_eq(journal_flush(j), JOURNAL_UNKNOWN);
	help_reopen(j);
	ck_assert(help_has(j, 50));
}

TEST(a_failed_one_leaves_the_one_before)
{
	struct caller first, second;

	second_first(&first, &second, 2);
	ck_assert_int_eq(first.r, 0);
	ck_assert_int_eq(second.r, JOURNAL_UNKNOWN);
	help_reopen(j);
	ck_assert(help_has(j, 0));
}

static void *flush_all(void *arg)
{
	struct caller *c = arg;

	c->r = journal_flush(j);
	return NULL;
}

/* The sync is held for twice the usual duration of a flush. A second flush
 * would begin after an eighth of that duration. */
TEST(what_is_being_flushed_is_flushed_once)
{
	struct caller callers[2];
	struct journal_stats stats;
	int64_t flush_ns;

	hold_next(0);
	flush_ns = journal_flush_ns(j);
	begin(&callers[0], 0, SMALL);
	wait_for(&held);
	ck_assert_int_eq(pthread_create(&callers[1].thread, NULL, flush_all,
			     &callers[1]),
	    0);
	do {
		sched_yield();
		journal_stats(j, &stats);
	} while (stats.waiting < 1 && atomic_load(&syncs) < 2);
	while (journal_flush_hangs_ns(j) < 2 * flush_ns)
		sched_yield();
	sched_yield();
	atomic_store(&let_go, true);
	ck_assert_int_eq(end(&callers[0]), 0);
	ck_assert_int_eq(end(&callers[1]), 0);
	ck_assert_int_eq(syncs, 1);
}

TEST(a_flush_that_hangs_is_seen)
{
	struct caller first;

	ck_assert_int_eq(journal_flush_hangs_ns(j), 0);
	hold_next(0);
	begin(&first, 0, SMALL);
	wait_for(&held);
	ck_assert_int_gt(journal_flush_hangs_ns(j), 0);
	atomic_store(&let_go, true);
	ck_assert_int_eq(end(&first), 0);
	ck_assert_int_eq(journal_flush_hangs_ns(j), 0);
}

TEST(one_too_large_costs_itself)
{
	static const size_t bytes[] = { SMALL, SMALL, LARGE, SMALL };
	struct caller callers[4];
	bool seen[4] = { false };
	unsigned i;

	atomic_store(&full_after, LARGE / 2);
	hold_next(0);
	atomic_store(&let_go, true);
	for (i = 0; i < 4; i++)
		begin(&callers[i], i, bytes[i]);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(end(&callers[i]), i == 2 ? -ENOSPC : 0);
	atomic_store(&full_after, INT64_MAX);
	ck_assert_uint_eq(help_scan(j, seen, 4), 4);
	ck_assert(seen[0] && seen[1] && !seen[2] && seen[3]);
}

TEST(a_failed_sync_is_unknown_to_all)
{
	struct caller callers[1 + OTHERS];
	unsigned i;

	hold_next(2);
	atomic_store(&go_on_failing, true);
	all_at_once(callers);
	atomic_store(&go_on_failing, false);
	ck_assert_int_eq(callers[0].r, 0);
	for (i = 1; i < 1 + OTHERS; i++)
		ck_assert_int_eq(callers[i].r, JOURNAL_UNKNOWN);
	help_reopen(j);
	ck_assert(help_has(j, 0));
}
