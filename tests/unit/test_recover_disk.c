/*
 * Proves that a repository with a failed or missing disk stops no start and
 * loses nothing. Its records are deferred. Once the repository is back, the
 * records are redone by the rule of the run that wrote the records. The running
 * daemon redoes records, too, and touches no locks of living writers. Every
 * deferred member is finished by itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define MAIN  WORLD_REPO "/refs/heads/main"
#define HEAD  WORLD_REPO "/HEAD"
#define AWAY  "/srv/away"
#define OTHER "/srv/disk/o.git"
#define ONES  "3131313131313131313131313131313131313131\n"

static struct scripted_txn h;
static unsigned disk; /* number of OTHER's disk */

static void setup(void)
{
	struct memfs *fs = memfs_new();

	wr_home = memfs_mount(fs, "/srv");
	w = world_new(fs, true);
	disk = memfs_mount(w->fs, "/srv/disk");
	memfs_mkdirs(w->fs, OTHER "/refs/heads");
	memfs_mkdirs(w->fs, OTHER "/objects/pack");
	memfs_write(w->fs, OTHER "/HEAD", "ref: refs/heads/main\n");
	memfs_write(w->fs, OTHER "/config", "[core]\n\tbare = true\n");
	memfs_write(w->fs, MAIN, ONES);
	ck_assert_int_eq(world_start(w), 0);
	h = (struct scripted_txn){ .w = w, .publish = SCRIPTED_ALL };
}

static void write_at(const char *repo, const char *name, char old, char new_c,
    size_t publish)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, name, old, new_c);

	m.answers = true;
	h.repo = repo;
	h.publish = publish;
	ck_assert_int_eq(scripted_apply(&h, &m, 1), publish > 0 ? 0 : -EAGAIN);
}

/* ---- a failing disk ---- */

CASE(.setup = setup, .teardown = wr_teardown, .seconds = 120);

TEST(a_dead_disk_stops_no_start)
{
	write_at(NULL, "refs/heads/x", '0', '2', SCRIPTED_ALL);
	write_at(OTHER, "refs/heads/x", '0', '3', SCRIPTED_ALL);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_set_dead(w->fs, disk, -EIO);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_FAILED] + w->found[STORE_REPO_MISSING],
	    1);
	ck_assert_int_eq(world_ref(w, "x"), '2');
	memfs_set_dead(w->fs, disk, 0);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert(memfs_exists(w->fs, OTHER "/refs/heads/x"));
}

static void die(struct memfs *fs, void *arg)
{
	(void)arg;
	memfs_set_dead(fs, wr_home, -EIO);
}

/* The repository's disk is gone from call N on. */
TEST(a_disk_that_dies_in_recovery_stops_no_start, .times = 2)
{
	unsigned long n, calls = 1;

	for (n = 0; n < calls; n++) {
		world_free(w);
		setup();
		wr_ok("x=1");
		write_at(NULL, "refs/heads/y", '0', '2', 0);
		if (_i == 0)
			memfs_crash(w->fs);
		else
			wr_power_loss(MEMFS_DATA_NONE, 0);
		world_crash(w);
		calls = memfs_nr_calls(w->fs);
		memfs_between(w->fs, n, die, NULL);
		ck_assert_int_eq(world_start(w), 0);
		calls = memfs_nr_calls(w->fs) - calls;
		memfs_set_dead(w->fs, wr_home, 0);
		/* The failed file system is deferred first. */
		world_tick(w);
		ck_assert_int_eq(world_retry(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "x"), '1');
		ck_assert_int_eq(world_ref(w, "y"), '2');
		ck_assert_int_eq(world_log_count(w, "y", '0', '2'), 1);
	}
	ck_assert_uint_gt(n, 50);
}

TEST(a_sync_that_fails_stops_no_start)
{
	wr_ok("x=1");
	write_at(OTHER, "refs/heads/x", '0', '3', SCRIPTED_ALL);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_was_hit(w->fs));
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_FAILED], 1);
	/* The next power loss takes the unsynced value, and the value is
	 * redone. */
	wr_power_loss(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert(memfs_exists(w->fs, OTHER "/refs/heads/x"));
}

/* Call N on the journal's disk fails in the start that defers a record. The
 * record is not forgotten without its copy, whatever is written later. */
static bool a_note_fails(enum memfs_call call, unsigned long n, int err)
{
	bool hit;

	setup();
	write_at(OTHER, "refs/heads/x", '0', '3', SCRIPTED_ALL);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_set_dead(w->fs, disk, -EIO);
	memfs_fail_call(w->fs, call, n, err);
	world_start(w);
	hit = memfs_was_hit(w->fs);
	memfs_fail_none(w->fs);
	memfs_set_dead(w->fs, disk, 0);
	world_crash(w);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert(memfs_exists(w->fs, OTHER "/refs/heads/x"));
	world_free(w);
	return hit;
}

TEST(a_failed_note_loses_nothing, .times = 2)
{
	static const struct {
		enum memfs_call call;
		int err;
	} faults[] = { { MEMFS_PWRITE, -ENOSPC }, { MEMFS_FDATASYNC, -EIO } };
	unsigned long n;

	world_free(w);
	for (n = 0; a_note_fails(faults[_i].call, n, faults[_i].err); n++)
		;
	ck_assert_uint_gt(n, 2);
	setup();
}

TEST(nothing_is_tried_while_the_disk_is_dead)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_set_dead(w->fs, wr_home, -EIO);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_int_eq(world_retry(w), -EIO);
	memfs_set_dead(w->fs, wr_home, 0);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* ---- which rule ---- */

/* After a crash, refd redoes only refs with their lock, however late the
 * repository comes back. */
TEST(what_was_finished_is_not_redone_when_it_is_back, .times = 2)
{
	char *locks;

	wr_ok("x=1");
	write_at(NULL, "refs/heads/y", '0', '2', 0);
	wr_unlink(WORLD_REPO "/refs/heads/x");
	memfs_crash(w->fs);
	world_crash(w);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 2);
	if (_i == 1)
		ck_assert_int_eq(scripted_crash(w), 0);
	wr_rename(AWAY, WORLD_REPO);
	if (_i == 1)
		ck_assert_int_eq(scripted_crash(w), 0);
	else
		ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_ref(w, "y"), '2');
	locks = memfs_list_locks(w->fs, WORLD_REPO);
	ck_assert_str_eq(locks, "");
	free(locks);
	/* The update is not redone again. */
	wr_unlink(WORLD_REPO "/refs/heads/y");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "y"), '0');
}

TEST(what_a_power_loss_took_is_redone_when_it_is_back)
{
	wr_ok("x=1");
	write_at(NULL, "refs/heads/y", '0', '2', 0);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 2);
	wr_rename(AWAY, WORLD_REPO);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_ref(w, "y"), '2');
}

/* A crash with a foreign packed-refs.lock. Our own lock goes, and the record
 * must not count as finished. */
TEST(a_crashed_deletion_waits_for_packed_refs, .times = 2)
{
	struct record_member m =
	    scripted_member(RECORD_DELETE, "refs/heads/p", '1', '0');

	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/p\n");
	h.publish = 0;
	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
	memfs_crash(w->fs);
	world_crash(w);
	if (_i == 1)
		wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	if (_i == 1)
		wr_rename(AWAY, WORLD_REPO);
	else
		ck_assert_int_eq(world_ref(w, "p"), '0');
	if (_i == 1) {
		memfs_write(w->fs, WORLD_REPO "/packed-refs.lock", "");
		ck_assert_int_eq(world_retry(w), 0);
		ck_assert_uint_eq(w->deferred, 1);
		ck_assert_str_eq(w->still, ":refs/heads/p");
		ck_assert(
		    !memfs_exists(w->fs, WORLD_REPO "/refs/heads/p.lock"));
		wr_unlink(WORLD_REPO "/packed-refs.lock");
		ck_assert_int_eq(world_retry(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "p"), '0');
	}
}

/* ---- beside a running daemon ---- */

TEST(a_retry_touches_no_lock_of_the_living)
{
	struct txn *txn;

	wr_ok("x=1");
	memfs_write(w->fs, WORLD_REPO "/refs/heads/x.lock", "");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	txn = world_session(w, "y=2", false);
	ck_assert(memfs_exists(w->fs, WORLD_REPO "/refs/heads/y.lock"));
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert(memfs_exists(w->fs, WORLD_REPO "/refs/heads/y.lock"));
	wr_unlink(WORLD_REPO "/refs/heads/x.lock");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	ck_assert_int_eq(world_ref(w, "y"), '2');
}

/* One update in one row changes main and adds the line of HEAD. */
TEST(each_deferred_member_is_finished_by_itself)
{
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", '1',
					 '2'),
		scripted_member(RECORD_WRITE, "refs/heads/main", '1', '2') };
	int i;

	m[0].answers = true;
	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 2);
	wr_rename(AWAY, WORLD_REPO);
	memfs_write(w->fs, HEAD ".lock", "");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	/* A missing line blocks no update. */
	ck_assert_uint_eq(w->nr_still, 0);
	ck_assert_int_eq(world_ref(w, "main"), '2');
	/* main is finished for good, so a later change by git stays. */
	wr_unlink(MAIN);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(world_retry(w), 0);
		ck_assert_uint_eq(w->deferred, 1);
		ck_assert_int_eq(world_ref(w, "main"), '0');
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_uint_eq(w->deferred, 1);
	}
	wr_unlink(HEAD ".lock");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(
	    scripted_log_lines(w, WORLD_REPO "/logs/HEAD", '1', '2'), 1);
	ck_assert_int_eq(world_ref(w, "main"), '0');
	ck_assert_int_eq(scripted_status(&h, 0), REFD_OK);
}

/* The same with two HEADs. */
TEST(each_worktrees_member_is_finished_by_itself)
{
	static const char log[] = WORLD_REPO "/worktrees/wt/logs/HEAD";
	struct record_member m[] = {
		scripted_member(RECORD_LOG, "HEAD", '1', '2'),
		scripted_in("wt", scripted_member(RECORD_LOG, "HEAD", '1', '2'))
	};

	memfs_write(w->fs, WORLD_REPO "/worktrees/wt/HEAD", ONES);
	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	wr_rename(AWAY, WORLD_REPO);
	memfs_write(w->fs, WORLD_REPO "/worktrees/wt/HEAD.lock", "");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_int_eq(
	    scripted_log_lines(w, WORLD_REPO "/logs/HEAD", '1', '2'), 1);
	wr_unlink(WORLD_REPO "/worktrees/wt/HEAD.lock");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(scripted_log_lines(w, log, '1', '2'), 1);
}

/* Another writer takes the name before the disk is back. Then the look-up by id
 * says that the update did not happen. */
TEST(a_deferred_update_can_still_fail)
{
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", '0',
					 '2'),
		scripted_member(RECORD_WRITE, "refs/heads/n", '0', '2') };

	m[0].answers = true;
	h.publish = 0;
	SCRIPTED_APPLY(&h, m);
	memfs_crash(w->fs);
	world_crash(w);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_int_eq(scripted_status(&h, 0), REFD_OK);
	wr_rename(AWAY, WORLD_REPO);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/n/x", ONES);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(scripted_status(&h, 0), REFD_CONFLICT);
	ck_assert_int_eq(
	    scripted_log_lines(w, WORLD_REPO "/logs/HEAD", '0', '2'), 0);
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/logs/refs/heads/n"));
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->found[STORE_LEFT], 0);
}

/* The update was recorded as failed, and its lock could not be removed. The
 * result stays, although the name is free again. */
TEST(what_was_aborted_is_not_deferred)
{
	unsigned long n;
	unsigned refused = 0;
	bool hit = true;
	int r;

	/* The first unlinkat() calls are in the state directory. One of them
	 * removes the note of the journal's room, and the start needs that. */
	for (n = 1; hit; n++) {
		world_free(w);
		setup();
		write_at(NULL, "refs/heads/n", '0', '2', 0);
		memfs_crash(w->fs);
		world_crash(w);
		memfs_write(w->fs, WORLD_REPO "/refs/heads/n/x", ONES);
		memfs_fail_call(w->fs, MEMFS_UNLINKAT, n, -EIO);
		r = world_start(w);
		hit = memfs_was_hit(w->fs);
		memfs_fail_none(w->fs);
		if (r == -EIO) {
			refused++;
			continue;
		}
		ck_assert_int_eq(r, 0);
		wr_unlink(WORLD_REPO "/refs/heads/n/x");
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "n"),
		    scripted_status(&h, 0) == REFD_OK ? '2' : '0');
	}
	ck_assert_int_eq(scripted_status(&h, 0), REFD_CONFLICT);
	ck_assert_uint_eq(refused, 1);
	ck_assert_uint_gt(n, 3);
}
