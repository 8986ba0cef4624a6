/*
 * Proves that a recovery that fails halfway loses nothing. The next start
 * finishes the work of a failed start. A client that wants to write a deferred
 * ref learns that the ref is deferred.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/world_rig.h"

#define REF WORLD_REPO "/refs/heads/x"

/* ---- a failed start ---- */

/* Kills the daemon before change N of a transaction. False: no such change. */
static bool run_and_kill(const char *spec, unsigned long n)
{
	bool hit;

	world_free(w);
	wr_setup_apart();
	wr_ok("x=1;y=1");
	memfs_crash_at(w->fs, n);
	world_done(w, world_apply(w, spec, true));
	hit = memfs_was_hit(w->fs);
	memfs_crash(w->fs);
	world_crash(w);
	return hit;
}

static void state(char out[32])
{
	snprintf(out, 32, "x %c %d y %c %d", world_ref(w, "x"),
	    world_log_count(w, "x", '1', '2'), world_ref(w, "y"),
	    world_log_count(w, "y", '1', '2'));
}

static void fail_first_starts(const char *spec)
{
	unsigned long n, k;
	char want[32], have[32], at[64];
	bool hit = true, was_hit;
	int r;

	for (n = 0; hit; n += sweep_step()) {
		hit = run_and_kill(spec, n);
		ck_assert_int_eq(world_start(w), 0);
		state(want);
		was_hit = true;
		for (k = 0; was_hit; k += sweep_step()) {
			run_and_kill(spec, n);
			memfs_fail(w->fs, k, -EIO);
			r = world_start(w);
			was_hit = memfs_was_hit(w->fs);
			snprintf(at, sizeof(at), "%s", memfs_hit(w->fs));
			memfs_fail_none(w->fs);
			/* A repository that the start took for missing stays
			 * deferred. So does every repository after a failed
			 * start. */
			if (r == 0 && w->deferred > 0) {
				memfs_crash(w->fs);
				world_crash(w);
				r = -EAGAIN;
			}
			if (r < 0) {
				memfs_crash(w->fs);
				ck_assert_int_eq(world_start(w), 0);
			}
			state(have);
			ck_assert_msg(strcmp(want, have) == 0,
			    "kill %lu, fault %lu (%s): want %s have %s", n, k,
			    at, want, have);
		}
	}
	ck_assert_uint_gt(n, 10);
}

CASE(.setup = wr_setup_apart, .teardown = wr_teardown, .seconds = 120);

TEST(a_failed_start_finishes_writes_later)
{
	fail_first_starts("x=2:1;y=2:1");
}

TEST(a_failed_start_finishes_deletions_later)
{
	fail_first_starts("-x:1;y=2:1");
}

/* Three transactions moved the ref. The first start is stopped at every change,
 * by a crash or by a second power loss that keeps all changes. A value of an
 * earlier record would be younger than our lock, and look foreign. */
TEST(a_stopped_start_leaves_no_earlier_value, .times = 2)
{
	unsigned long n;
	bool hit = true;
	int r;

	for (n = 0; hit; n += sweep_step()) {
		world_free(w);
		wr_setup_apart();
		wr_ok("x=1");
		ck_assert_int_eq(world_checkpoint(w), 0);
		wr_ok("x=2:1");
		wr_ok("x=3:2");
		wr_ok("x=4:3");
		wr_power_loss(MEMFS_DATA_NONE, 0);
		memfs_advance(w->fs, 1000000000);
		if (_i == 0)
			memfs_crash_at(w->fs, n);
		else
			memfs_power_loss_at(w->fs, n);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		r = _i == 0 ? scripted_crash(w) :
			      scripted_power_loss(w, MEMFS_DATA_ALL, 1000);
		ck_assert_int_eq(r, 0);
		ck_assert_int_eq(world_ref(w, "x"), '4');
		ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
		ck_assert_int_eq(world_log_count(w, "x", '3', '4'), 1);
		ck_assert_uint_eq(w->found[STORE_LEFT], 0);
	}
	ck_assert_uint_gt(n, 5);
}

/* A start crashes at every change. A start forgets records and writes their
 * deferred copies in one commit, so no record is lost. */
TEST(a_crashed_start_forgets_nothing)
{
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		world_free(w);
		wr_setup_apart();
		wr_ok("x=1");
		wr_power_loss(MEMFS_DATA_NONE, 0);
		wr_rename(WORLD_REPO, "/srv/away");
		memfs_crash_at(w->fs, n);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_uint_eq(w->deferred, 1);
		wr_rename("/srv/away", WORLD_REPO);
		ck_assert_int_eq(world_retry(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "x"), '1');
	}
	ck_assert_uint_gt(n, 5);
}

/* ---- deferred records ---- */

static void cut_with_a_foreign_lock(void)
{
	memfs_write(w->fs, REF ".lock", "");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->deferred, 1);
}

/* A write to x during this report would be undone. */
TEST(deferred_is_told_of_until_it_is_redone)
{
	wr_ok("x=1");
	cut_with_a_foreign_lock();
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->nr_still, 1);
	ck_assert_str_eq(w->still, ":refs/heads/x");
	ck_assert_int_eq(
	    SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, REF ".lock"), 0);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_uint_eq(w->nr_still, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}
