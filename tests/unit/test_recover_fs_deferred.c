/*
 * Proves the evidence of a record that a start defers after a failed sync.
 * While the file system stays in memory, its names are exact, and its contents
 * are not. So a later attempt undoes no foreign deletion, and still writes a
 * value that the disk lacks.
 */
#include <errno.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define AWAY        "/srv/away"
#define REF         WORLD_REPO "/refs/heads/x"
#define LOCK        REF ".lock"
#define LOG         WORLD_REPO "/logs/refs/heads/x"
#define PACKED_LOCK WORLD_REPO "/packed-refs.lock"

/* The next start must not trust the memory. */
static void fail_to_sync(void)
{
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_lt(world_tick(w), 0);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
}

static void delete_by_git(void)
{
	wr_unlink(REF);
	wr_unlink(LOG);
}

/* The next attempt: in the running daemon, or by a start after a crash. */
static void try_again(bool in_daemon)
{
	ck_assert_int_eq(in_daemon ? world_retry(w) : scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
}

/* The next start finds a foreign lock on x. */
static void defer_x(void)
{
	memfs_write(w->fs, LOCK, "");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
}

CASE(.setup = wr_setup_mounted, .teardown = wr_teardown, .seconds = 60);

TEST(a_deletion_before_the_crash_stays, .times = 2)
{
	wr_ok("x=1");
	fail_to_sync();
	delete_by_git();
	defer_x();
	wr_unlink(LOCK);
	try_again(_i == 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert(!world_has_log(w, "x"));
}

/* The lock belongs to the deletion. Several starts may find the lock. */
TEST(a_deletion_after_the_crash_stays, .times = 4)
{
	wr_ok("x=1");
	fail_to_sync();
	defer_x();
	if (_i > 1)
		defer_x();
	delete_by_git();
	wr_unlink(LOCK);
	try_again(_i % 2 == 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert(!world_has_log(w, "x"));
}

TEST(a_missing_repository_undoes_no_deletion, .times = 2)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/z", '0', '1');
	struct scripted_txn h = { .w = w };

	wr_ok("x=1");
	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
	fail_to_sync();
	delete_by_git();
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 2);
	wr_rename(AWAY, WORLD_REPO);
	try_again(_i == 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	/* The lock of z shows that z was not published. */
	ck_assert_int_eq(world_ref(w, "z"), '1');
	wr_expect_locks("");
}

static int keep_cache(const struct sys *sys, int fd)
{
	(void)sys;
	(void)fd;
	return 0;
}

/* The disk lacks the value. The memory has the value and may keep it. */
TEST(a_value_is_written_again, .times = 4)
{
	wr_ok("x=1");
	fail_to_sync();
	if (_i > 1)
		((struct sys *)(uintptr_t)w->sys)->drop_cache = keep_cache;
	defer_x();
	wr_unlink(LOCK);
	try_again(_i % 2 == 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	if (_i < 2)
		ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
}

/* After a power loss the names are not exact either. */
TEST(a_power_loss_redoes_the_value)
{
	wr_ok("x=1");
	fail_to_sync();
	defer_x();
	wr_power_loss(MEMFS_DATA_NONE, 0);
	if (memfs_exists(w->fs, LOCK))
		wr_unlink(LOCK);
	wr_start();
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* The start removes our lock, and with the lock the evidence that the deletion
 * was not published. The start may crash at every change. */
TEST(a_deletion_under_our_lock_is_redone, .times = 2)
{
	struct record_member m =
	    scripted_member(RECORD_DELETE, "refs/heads/x", '1', '0');
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		struct scripted_txn h;

		wr_teardown();
		wr_setup_mounted();
		h = (struct scripted_txn){ .w = w };
		wr_ok("x=1");
		scripted_sync(w);
		ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
		fail_to_sync();
		memfs_write(w->fs, PACKED_LOCK, "");
		memfs_crash(w->fs);
		world_crash(w);
		memfs_crash_at(w->fs, n);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_uint_ge(w->deferred, 1);
		ck_assert_int_eq(world_ref(w, "x"), '1');
		wr_unlink(PACKED_LOCK);
		try_again(_i == 0);
		ck_assert_int_eq(world_ref(w, "x"), '0');
		wr_expect_locks("");
	}
	ck_assert_uint_gt(n, 20);
}
