/*
 * Proves what a node of a group does while a repository waits that recovery
 * cannot redo. Retries notice when the cause is gone, and leave time and room
 * to other repositories. Nobody gives the updates up, and a kill or a power
 * loss at any moment loses no update. A repository that waits does not count as
 * an older copy, but an older copy in its place is noticed. The owner of one
 * repository can't make refd believe that all repositories are an older copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/deferred/deferred_internal.h"
#include "daemon/store/deferred/deferred_retry.h"
#include "daemon/store/recovery/old_copy.h"
#include "tests/lib/lack_rig.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"

#define REF   WORLD_REPO "/refs/heads/x"
#define Y     WORLD_REPO "/refs/heads/y"
#define STAGE WORLD_REPO "/refd/stage"
#define OTHER "/srv/other.git"
#define AWAY  "/srv/away.git"
#define TWOS  "2222222222222222222222222222222222222222\n"

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS   (3600 * SECOND_NS)

/* x has lost its value, and waits for a foreign lock. */
static void wait_for_lock(void)
{
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, REF ".lock", "");
	wr_start();
	ck_assert_uint_eq(lack_nr(), 1);
}

CASE(.setup = lack_setup, .teardown = wr_teardown, .seconds = 60);

/* Retries after a checkpoint, and before a write, find the end of the cause.
 * Before, they leave most of the time to others. */
TEST(a_retry_ends_the_waiting)
{
	static struct txn txn;
	struct journal_repo next;
	struct deferred *d;
	struct repo *repo;
	unsigned long calls;

	wr_ok("x=1");
	wait_for_lock();
	d = w->store.deferred;
	repo = world_repo(w, WORLD_REPO);
	ck_assert_ptr_nonnull(repo);
	ck_assert(deferred_blocks_writes(d, repo->id));
	ck_assert_int_eq(deferred_retry(d, repo, NULL), -ENOTRECOVERABLE);
	calls = memfs_nr_calls(w->fs);
	ck_assert_int_eq(deferred_retry(d, repo, &txn), -ENOTRECOVERABLE);
	ck_assert_uint_eq(memfs_nr_calls(w->fs), calls);
	ck_assert_uint_eq(deferred_next(d, &next, 1), 0);
	ck_assert_uint_eq(lack_nr(), 1);
	wr_unlink(REF ".lock");
	memfs_advance(w->fs, SECOND_NS);
	ck_assert_uint_eq(deferred_next(d, &next, 1), 1);
	free(next.path);
	ck_assert_int_eq(deferred_retry(d, repo, NULL), 0);
	ck_assert_uint_eq(lack_nr(), 0);
	ck_assert(!deferred_blocks_writes(d, repo->id));
	ck_assert_int_eq(world_ref(w, "x"), '1');
	wr_expect_locks("");
	repo_put(&w->store.repos, repo);
}

/* The missing repository has come back, and counts as lacking refs from the
 * first failed retry on. */
TEST(a_repository_that_came_back_and_waits)
{
	struct repo *repo;

	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	wr_start();
	wr_rename(AWAY, WORLD_REPO);
	memfs_write(w->fs, REF ".lock", "");
	repo = world_repo(w, WORLD_REPO);
	ck_assert_ptr_nonnull(repo);
	ck_assert_uint_eq(lack_nr(), 0);
	ck_assert_int_eq(deferred_retry(w->store.deferred, repo, NULL),
	    -ENOTRECOVERABLE);
	ck_assert_uint_eq(lack_nr(), 1);
	wr_unlink(REF ".lock");
	ck_assert_int_eq(deferred_retry(w->store.deferred, repo, NULL), 0);
	ck_assert_uint_eq(lack_nr(), 0);
	repo_put(&w->store.repos, repo);
}

/* The node would count as whole, and its owner would get old refs. */
TEST(nobody_gives_the_updates_up)
{
	char *uuids = NULL;
	uint8_t uuid[16];
	uint64_t id, nr;

	wr_ok("x=1");
	wait_for_lock();
	ck_assert_int_eq(store_find_known(&w->store, WORLD_REPO, &id, &uuids),
	    0);
	free(uuids);
	ck_assert_int_eq(store_forget(&w->store, id, &nr), -EBUSY);
	ck_assert_int_eq(store_leave(&w->store, uuid), -EBUSY);
	ck_assert(journal_shares_rows(w->store.journal));
	lack_end();
	wr_rename(WORLD_REPO, AWAY);
	wr_start();
	ck_assert_int_eq(store_forget(&w->store, id, &nr), 0);
	ck_assert_uint_eq(nr, 1);
}

/* A daemon that is killed has committed NAME, and not published it. */
static void commit_only(const char *name, char old, char new_c)
{
	const struct record_member m =
	    scripted_member(RECORD_WRITE, name, old, new_c);
	struct scripted_txn h = { .w = w };

	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
}

static unsigned nr_staged(void)
{
	const struct sys *sys = memfs_other(w->fs);
	struct sys_dirent entry;
	struct sys_dir *dir;
	unsigned nr = 0;

	ck_assert_int_eq(SYS(sys, dir_open, AT_FDCWD, STAGE, &dir), 0);
	while (SYS(sys, dir_next, dir, &entry) > 0)
		nr++;
	SYS(sys, dir_close, dir);
	return nr;
}

/* Somebody has removed the lock of x, as git tells people to, so each retry
 * takes it again. */
TEST(retries_leave_no_more_files)
{
	unsigned nr;
	int i;

	commit_only("refs/heads/x", '0', '1');
	commit_only("refs/heads/y", '0', '1');
	memfs_write(w->fs, Y "/z", TWOS);
	lack_end();
	wr_unlink(REF ".lock");
	wr_start();
	ck_assert_uint_eq(lack_nr(), 1);
	ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
	ck_assert(memfs_exists(w->fs, REF ".lock"));
	nr = nr_staged();
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
	ck_assert_uint_eq(nr_staged(), nr);
	wr_unlink(Y "/z");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_ref(w, "y"), '1');
	wr_expect_locks("");
	ck_assert_uint_eq(nr_staged(), 0);
}

static void expect_findings(unsigned nr)
{
	ck_assert_uint_eq(w->found[STORE_OBJECT_LACKING], nr);
	ck_assert_uint_eq(w->found[STORE_LEFT], nr);
}

/* The log of x has no place, and its object is missing. */
TEST(a_retry_tells_once_what_no_redo_changes)
{
	wr_ok("x=p");
	wr_ok("y=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, WORLD_REPO "/logs/refs/heads/x/z", "");
	memfs_write(w->fs, Y ".lock", "");
	wr_start();
	ck_assert_uint_eq(lack_nr(), 1);
	expect_findings(1);
	ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
	expect_findings(0);
	ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
	expect_findings(0);
	wr_unlink(Y ".lock");
	ck_assert_int_eq(world_retry(w), 0);
	expect_findings(1);
}

/* ---- a kill, or a power loss ---- */

enum { BY_CUT = 1, IN_RETRY = 2, AFTER_CRASH = 4, NR_STOPS = 8 };

/* x cannot be redone, after a power loss or a crash. */
static void break_x(int how)
{
	if (how & AFTER_CRASH) {
		commit_only("refs/heads/x", '0', '1');
		memfs_write(w->fs, REF "/z", TWOS);
		lack_end();
	} else {
		wr_ok("x=1");
		wr_power_loss(MEMFS_DATA_NONE, 0);
		memfs_write(w->fs, REF ".lock", "");
	}
	if (how & IN_RETRY)
		wr_start();
}

/* The start, or the retry, ends before its N-th change. False: it has fewer
 * changes. */
static bool stop_at(unsigned long n, int how)
{
	bool is_hit;

	if (how & BY_CUT)
		memfs_power_loss_at(w->fs, n);
	else
		memfs_crash_at(w->fs, n);
	if (how & IN_RETRY)
		world_retry(w);
	else
		world_start(w);
	is_hit = memfs_was_hit(w->fs);
	if (how & BY_CUT)
		wr_power_loss(MEMFS_DATA_NONE, 0);
	else
		lack_end();
	return is_hit;
}

/* The repository waits until the cause is gone, and nothing is lost. */
TEST(stopped_at_any_change, .times = NR_STOPS)
{
	bool is_hit = true;
	unsigned long n;

	for (n = 0; is_hit; n++) {
		if (n > 0) {
			wr_teardown();
			lack_setup();
		}
		break_x(_i);
		is_hit = stop_at(n, _i);
		wr_start();
		ck_assert_uint_eq(lack_nr(), 1);
		ck_assert_uint_eq(w->deferred, 1);
		lack_end();
		wr_unlink(_i & AFTER_CRASH ? REF "/z" : REF ".lock");
		lack_starts();
	}
	ck_assert_uint_gt(n, 2);
}

/* ---- older copies ---- */

/* The ref at PATH gets the value 1, of an hour ago. */
static void put_older(const char *path)
{
	memfs_shift_wall(w->fs, -HOUR_NS);
	world_write(w->fs, path, "@1\n");
	memfs_shift_wall(w->fs, HOUR_NS);
}

static void expect_older_copy(void)
{
	ck_assert_int_eq(world_start(w), -ENOTRECOVERABLE);
	ck_assert_ptr_nonnull(strstr(w->why, "an older copy"));
}

/* The refs are older than their rows, and one owner has all repositories. Both
 * are signs of an older copy, but the repository waits and is none. */
TEST(a_waiting_repository_is_no_older_copy)
{
	wr_ok("x=1");
	ck_assert_int_eq(world_stop(w), 0);
	wr_start();
	wr_ok("x=2");
	wait_for_lock();
	ck_assert_int_eq(world_ref(w, "x"), '1');
	lack_end();
	lack_waits(STORE_DEFERRED, "refs/heads/x");
	wr_unlink(REF ".lock");
	wr_start();
	ck_assert_uint_eq(lack_nr(), 0);
	ck_assert_int_eq(world_ref(w, "x"), '2');
}

/* No row of the ref waits. */
TEST(a_waiting_repository_is_an_older_copy)
{
	wr_ok("y=1");
	wr_ok("y=2");
	ck_assert_int_eq(world_stop(w), 0);
	wr_start();
	wr_ok("x=1");
	wait_for_lock();
	lack_end();
	put_older(Y);
	expect_older_copy();
}

/* An administrator puts a backup in the place of a repository that waits, or is
 * missing. No lock and no token tells of the row any more. */
TEST(a_backup_of_a_waiting_repository, .times = 2)
{
	wr_ok("x=1");
	ck_assert_int_eq(world_stop(w), 0);
	wr_start();
	commit_only("refs/heads/x", '1', '2');
	lack_end();
	memfs_write(w->fs, WORLD_REPO "/packed-refs", "torn");
	if (_i > 0)
		wr_rename(WORLD_REPO, AWAY);
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(lack_nr(), _i > 0 ? 0 : 1);
	lack_end();
	if (_i > 0)
		wr_rename(AWAY, WORLD_REPO);
	wr_unlink(WORLD_REPO "/packed-refs");
	wr_unlink(REF ".lock");
	wr_rename(STAGE, "/srv/stage");
	put_older(REF);
	expect_older_copy();
	expect_older_copy();
}

/* Its update is redone, by a retry or a start. Then another program writes an
 * earlier value, which is mended later. */
TEST(an_earlier_value_after_the_redo, .times = 2)
{
	wr_ok("x=1");
	ck_assert_int_eq(world_stop(w), 0);
	wr_start();
	wr_ok("x=2");
	wait_for_lock();
	if (_i > 0) {
		lack_end();
		wr_start();
		lack_end();
	}
	wr_unlink(REF ".lock");
	if (_i > 0)
		wr_start();
	else
		ck_assert_int_eq(world_retry(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_stop(w), 0);
	memfs_advance(w->fs, SECOND_NS);
	world_write(w->fs, REF, "@1\n");
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

static void lose_time(struct memfs *fs, void *arg)
{
	*(bool *)arg = true;
	memfs_advance(fs, HOUR_NS);
}

static void ignore(void *arg, const struct store_found *found)
{
	(void)arg;
	(void)found;
}

/* The journal hangs before the look reads the first row. */
TEST(a_look_has_its_time)
{
	const struct store_report report = { .found = ignore };
	bool skipped, is_lost = false;
	char *why = NULL;

	wr_ok("x=1");
	wr_ok("x=2");
	put_older(REF);
	/* The look opens it again. */
	repos_trim(&w->store.repos, -1);
	memfs_between(w->fs, 0, lose_time, &is_lost);
	ck_assert_int_eq(old_copy_look(&w->store.repos, w->store.journal,
			     &report, 0, UINT64_MAX, &skipped, &why),
	    -ENOTRECOVERABLE);
	ck_assert(is_lost);
	ck_assert(!skipped);
	free(why);
}

/* This node lags, and publishes a row of the ref after another node has
 * published the next one. So the file in a copy of that node is older than the
 * lock of the row, and the note in the copy is of another journal. */
TEST(a_newer_copy_of_another_node)
{
	wr_ok("x=1");
	wr_ok("x=2");
	ck_assert_int_eq(world_stop(w), 0);
	put_older(REF);
	memfs_write(w->fs, WORLD_REPO "/refd/checkpoint",
	    "journal 00000000000000000000000000000001 since "
	    "00000000000000000001\nlsn 00000000000000000009\n");
	wr_start();
	ck_assert_uint_eq(lack_nr(), 0);
}

/* An older value of an older time, while the other repository is right. If it
 * has the same owner, the repositories are an older copy. Otherwise its owner
 * may have written both, and stops no node. */
TEST(an_owner_alone_stops_no_node, .times = 2)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn other = { .w = w,
		.repo = OTHER,
		.publish = SCRIPTED_ALL };

	lack_make_repo(OTHER);
	wr_ok("x=1");
	wr_ok("x=2");
	ck_assert_int_eq(scripted_apply(&other, &m, 1), 0);
	ck_assert_int_eq(world_stop(w), 0);
	put_older(REF);
	if (_i == 0) {
		expect_older_copy();
	} else {
		memfs_set_owner(w->fs, OTHER "/refs", 1001, 1001);
		ck_assert_int_eq(seteuid(65534), 0);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_int_eq(seteuid(getuid()), 0);
	}
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
}
