/*
 * Commits that come while one is under way: they wait for it, and then one
 * flush is enough for all of them; each has rows and numbers of its own. What
 * makes all of them together impossible is tried one by one, and costs nobody
 * but the one that is too large. A sync that fails is unknown to all whose
 * rows went with it.
 *
 * The disk is a real one, whose first sync is held until the others wait.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/sysvfs.h"
#include "tests/lib/tmp.h"

#define OTHERS 3
#define SMALL  100
#define HUGE   (4 * 1024 * 1024)

static struct sys sys;
static struct sysvfs *vfs;
static struct journal *j;
static atomic_bool hold;        /* the next sync, until all others wait */
static atomic_bool next_fails;  /* the sync after that */
static atomic_llong full_after; /* no file gets longer */

static int held_fdatasync(const struct sys *self, int fd)
{
	struct journal_stats stats;

	(void)self;
	if (atomic_exchange(&hold, false)) {
		do {
			sched_yield();
			journal_stats(j, &stats);
		} while (stats.waiting < OTHERS);
	} else if (atomic_exchange(&next_fails, false)) {
		return -EIO;
	}
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
	int r;
};

static void *commit_one(void *arg)
{
	struct caller *c = arg;

	c->r = help_commit(j, c->row, 1, c->bytes);
	return NULL;
}

/* The first is at its sync until all others wait. BYTES: of each one's row. */
static void all_at_once(struct caller callers[1 + OTHERS], const size_t *bytes)
{
	unsigned i;

	atomic_store(&hold, true);
	for (i = 0; i < 1 + OTHERS; i++) {
		callers[i] = (struct caller){ .row = i, .bytes = bytes[i] };
		ck_assert_int_eq(pthread_create(&callers[i].thread, NULL,
				     commit_one, &callers[i]),
		    0);
		while (i == 0 && atomic_load(&hold))
			sched_yield();
	}
	for (i = 0; i < 1 + OTHERS; i++)
		pthread_join(callers[i].thread, NULL);
}

START_TEST(one_flush_for_all_that_wait)
{
	static const size_t bytes[] = { SMALL, SMALL, SMALL, SMALL };
	struct caller callers[1 + OTHERS];
	struct journal_stats before, after;
	bool seen[1 + OTHERS] = { false };
	unsigned i;

	ck_assert_int_eq(help_commit(j, 50, 1, SMALL), 0);
	journal_stats(j, &before);
	all_at_once(callers, bytes);
	journal_stats(j, &after);
	ck_assert_uint_eq(after.commits, before.commits + 2);
	ck_assert_uint_eq(after.flushes, before.flushes + 2);
	ck_assert_uint_eq(after.waiting, 0);
	/* help_scan() sees to it that numbers ascend. */
	ck_assert_uint_eq(help_scan(j, seen, 1 + OTHERS), 2 + OTHERS);
	for (i = 0; i < 1 + OTHERS; i++)
		ck_assert(callers[i].r == 0 && seen[i]);
	ck_assert_uint_eq(journal_last_lsn(j), journal_lasting(j));
}
END_TEST

START_TEST(one_too_large_costs_itself)
{
	static const size_t bytes[] = { SMALL, SMALL, HUGE, SMALL };
	struct caller callers[1 + OTHERS];
	bool seen[1 + OTHERS] = { false };

	atomic_store(&full_after, HUGE / 2);
	all_at_once(callers, bytes);
	atomic_store(&full_after, INT64_MAX);
	ck_assert_int_eq(callers[0].r, 0);
	ck_assert_int_eq(callers[1].r, 0);
	ck_assert_int_eq(callers[2].r, -ENOSPC);
	ck_assert_int_eq(callers[3].r, 0);
	ck_assert_uint_eq(help_scan(j, seen, 1 + OTHERS), OTHERS);
	ck_assert(seen[0] && seen[1] && !seen[2] && seen[3]);
}
END_TEST

START_TEST(a_failed_sync_is_unknown_to_all)
{
	static const size_t bytes[] = { SMALL, SMALL, SMALL, SMALL };
	struct caller callers[1 + OTHERS];
	char *why = NULL;
	unsigned i;

	/* So that the WAL does not begin with them, which costs a sync. */
	ck_assert_int_eq(help_commit(j, 50, 1, SMALL), 0);
	atomic_store(&next_fails, true);
	all_at_once(callers, bytes);
	ck_assert_int_eq(callers[0].r, 0);
	for (i = 1; i < 1 + OTHERS; i++)
		ck_assert_int_eq(callers[i].r, JOURNAL_UNKNOWN);
	ck_assert_int_eq(journal_reopen(j, &why), 0);
	ck_assert(help_has(j, 0));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("journal, commits together");
	TCase *tc = tcase_create("together");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, one_flush_for_all_that_wait);
	tcase_add_test(tc, one_too_large_costs_itself);
	tcase_add_test(tc, a_failed_sync_is_unknown_to_all);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
