/*
 * Proves that refd survives schedules that a plausible design loses
 * (tests/SCHEDULES.md). This file has the schedules without another test:
 * foreign writes between a publication and its checkpoint or pack, a disk that
 * goes away and comes back, a HEAD that a power loss emptied, logs of deleted
 * refs, missing log lines, and the refs that are locked while packed-refs is
 * written.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define X      WORLD_REPO "/refs/heads/x"
#define X_LOG  WORLD_REPO "/logs/refs/heads/x"
#define HEAD   WORLD_REPO "/HEAD"
#define PACKED WORLD_REPO "/packed-refs"
#define ONES   "3131313131313131313131313131313131313131\n"
#define FIVES  "3535353535353535353535353535353535353535\n"
#define HEADER "# pack-refs with: peeled fully-peeled sorted \n"

/* As pack-refs of a git that does not sync: write, then rename. */
static void git_packs(const char *line)
{
	scripted_git_writes(w, PACKED, line);
}

/* ---- 1: recovery reports a redo ---- */

CASE(.setup = wr_setup_mounted, .teardown = wr_teardown, .seconds = 60);

TEST(what_is_redone_over_anothers_is_told)
{
	static const char older[] =
	    "3030303030303030303030303030303030303030\n";

	/* The first update of a repository syncs the file system. */
	wr_ok("first=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	memfs_write(w->fs, X, older);
	scripted_git_writes(w, X, ONES);
	wr_ok("x=2:1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_expect_file(X, older);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
}

/* ---- 6: packed and pruned before the checkpoint ---- */

/* git packs our value before the value is on disk, and unlinks the loose file.
 * Nothing is synced. The power loss may keep all, some or none of these
 * changes. */
TEST(packed_and_pruned_before_the_checkpoint, .times = 40)
{
	memfs_write(w->fs, PACKED, HEADER);
	wr_ok("x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("x=2:1");
	git_packs(
	    HEADER "3232323232323232323232323232323232323232 refs/heads/x\n");
	wr_unlink(X);
	wr_power_loss((enum memfs_data)(_i % 5), _i / 5);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
}

/* ---- 7: the checkpoint ---- */

/* The checkpoint makes the last value durable, also if git wrote it. */
TEST(the_checkpoint_carries_a_foreign_write)
{
	wr_ok("x=1");
	scripted_git_writes(w, X, FIVES);
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '5');
	ck_assert_uint_eq(w->found[STORE_REDONE], 0);
}

TEST(the_checkpoint_carries_a_foreign_pack)
{
	wr_ok("x=1");
	git_packs(
	    HEADER "3131313131313131313131313131313131313131 refs/heads/x\n");
	wr_unlink(X);
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* The ref is in a directory that git made. A sync of our own directories would
 * miss it. */
TEST(the_checkpoint_carries_foreign_directories)
{
	memfs_set_mode(w->fs, MEMFS_STRICT);
	ck_assert_int_eq(SYS(memfs_other(w->fs), mkdirat, AT_FDCWD,
			     WORLD_REPO "/refs/heads/n", 0777),
	    0);
	wr_ok("n/x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_start();
	ck_assert_int_eq(world_ref(w, "n/x"), '1');
}

/* The disk dies and is mounted again while the daemon lives. The syncfs of a
 * new descriptor then succeeds. */
TEST(a_disk_that_came_back_is_not_taken_for_synced)
{
	struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };
	uint64_t before;

	wr_ok("x=1");
	before = journal_forgotten(w->store.journal);
	memfs_remount(w->fs, wr_home, &nothing);
	world_checkpoint(w);
	ck_assert_uint_eq(journal_forgotten(w->store.journal), before);
	/* The next start redoes the record: after a crash, on another mount. */
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* ---- 9: abort records and missing log lines ---- */

static int nr_commits;

static int commit_and_take_the_name(void *arg, struct journal_row *rows,
    size_t nr, bool flush)
{
	const struct sys *sys = memfs_other(w->fs);
	int r = pipeline_commit(((struct world *)arg)->store.pipeline, rows, nr,
	    flush);

	if (nr_commits++ == 0) {
		SYS(sys, mkdirat, AT_FDCWD, X, 0777);
		scripted_git_writes(w, X "/y", FIVES);
	}
	return r;
}

/* git made x/y while our x was being flushed, with or without a sync. The
 * answer was `conflict`, so x is not redone. x/y stays, because it belongs to
 * git. */
TEST(an_abort_survives_power_loss, .times = 4)
{
	struct txn *txn;

	nr_commits = 0;
	w->store.pipeline->applier.commit = commit_and_take_the_name;
	txn = world_apply(w, _i % 2 ? "x=1:0;z=1:0" : "x=1:0", _i % 2);
	ck_assert_int_eq(txn->updates[0].status, REFD_CONFLICT);
	world_done(w, txn);
	if (_i < 2)
		scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x/y"), _i < 2 ? '5' : '0');
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_ref(w, "z"), '0');
}

/* A log line could not be written after the commit point. The living daemon or
 * a later start adds the line as soon as there is room, even if everything else
 * was checkpointed meanwhile. */
TEST(an_owed_line_is_paid, .times = 6)
{
	unsigned long n;

	for (n = 0; w->owed == 0; n++) {
		wr_teardown();
		wr_setup_mounted();
		wr_ok("x=1");
		ck_assert_int_eq(world_checkpoint(w), 0);
		wr_fail_write("x=2:1", false, n, -ENOSPC);
		ck_assert_uint_lt(n, 20);
	}
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 0);
	if (_i >= 3) {
		/* Still no room. */
		memfs_fail_call(w->fs, MEMFS_WRITE_ALL, 0, -ENOSPC);
		world_retry(w);
		memfs_fail_none(w->fs);
		ck_assert_int_eq(world_checkpoint(w), 0);
	}
	switch (_i % 3) {
	case 0:
		ck_assert_int_eq(world_retry(w), 0);
		break;
	case 1:
		wr_power_loss(MEMFS_DATA_NONE, 0);
		wr_start();
		break;
	case 2:
		ck_assert_int_eq(scripted_crash(w), 0);
		break;
	}
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
}

/* ---- 14: logs ---- */

/* The ref was deleted and created again. A power loss brings back the old log
 * file. The new ref does not inherit that log. */
TEST(a_log_of_the_deleted_is_not_inherited, .times = 60)
{
	wr_ok("x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
	wr_ok("-x:1");
	wr_ok("x=2:0");
	wr_power_loss((enum memfs_data)(_i % 5), _i / 5);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 0);
	ck_assert_int_eq(world_log_count(w, "x", '0', '2'), 1);
}

/* git appended a line after ours. The line stays in place, once, even if the
 * power loss put NULs in place of our line. */
TEST(a_foreign_line_after_ours, .times = 5)
{
	static const char line[] = "3232323232323232323232323232323232323232 "
				   "3535353535353535353535353535353535353535 "
				   "G <g@example.org> 1700000099 +0000\tgit\n";
	const struct sys *sys = memfs_other(w->fs);
	int fd;

	wr_ok("x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("x=2:1");
	fd = SYS(sys, openat, AT_FDCWD, X_LOG, O_WRONLY | O_APPEND, 0);
	ck_assert_int_eq(SYS(sys, write_all, fd, line, sizeof(line) - 1), 0);
	SYS(sys, close, fd);
	scripted_git_writes(w, X, FIVES);
	if (_i == 0)
		scripted_sync(w);
	wr_power_loss((enum memfs_data)_i, 1000);
	wr_start();
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
	ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
	ck_assert_int_le(world_log_count(w, "x", '2', '5'), 1);
	if (_i == 0)
		ck_assert_int_eq(world_log_count(w, "x", '2', '5'), 1);
}

/* ---- 15: recovery meets odd files ---- */

/* A power loss interrupted the writing of HEAD. */
TEST(a_head_that_is_no_more_stops_nobody, .times = 3)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	switch (_i) {
	case 0:
		memfs_write(w->fs, HEAD, "");
		break;
	case 1:
		wr_unlink(HEAD);
		break;
	case 2:
		memfs_write_bytes(w->fs, HEAD, "\0\0\0\0\0\0\0\0", 8);
		break;
	}
	wr_start();
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* The wall clock may be wrong. A lock of a living git stays valid even if the
 * lock looks older than the boot. */
TEST(clocks_do_not_tell_whose_lock_it_is, .times = 2)
{
	wr_ok("x=1");
	wr_ok("y=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_shift_wall(w->fs, _i ? -86400000000000 : 86400000000000);
	memfs_write(w->fs, X ".lock", "");
	memfs_shift_wall(w->fs, _i ? 86400000000000 : -86400000000000);
	wr_start();
	ck_assert(memfs_exists(w->fs, X ".lock"));
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_int_eq(world_ref(w, "y"), '1');
	wr_unlink(X ".lock");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* Recovery forgets no redone record before its sync. */
TEST(recovery_syncs_before_it_forgets)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_start();
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* ---- 16: a stronger mode, and 1: a weaker mode below ---- */

static void ok_in(const char *spec, enum refd_durability asked)
{
	w->asked = asked;
	wr_ok(spec);
	w->asked = REFD_DURABILITY_DEFAULT;
}

/* To a new value and back: the first record must not have the last word. */
TEST(a_stronger_mode_goes_through_the_journal, .times = 16)
{
	static const enum refd_durability modes[] = { REFD_DURABILITY_BATCH,
		REFD_DURABILITY_FSYNC };

	wr_ok("x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("x=2:1");
	ok_in("x=1:2", modes[_i % 2]);
	wr_power_loss(MEMFS_DATA_NONE, _i / 2);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_log_count(w, "x", '2', '1'), 1);
}

/* A durable update follows an update of a weaker mode. The power loss takes
 * both values. The value that remains is older than every value in the
 * record. */
TEST(a_weaker_predecessor, .times = 32)
{
	static const enum refd_durability weak[] = { REFD_DURABILITY_NONE,
		REFD_DURABILITY_PERIODIC };
	static const enum refd_durability strong[] = { REFD_DURABILITY_JOURNAL,
		REFD_DURABILITY_FSYNC };

	wr_ok("x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	world_crash(w);
	w->mode = weak[_i % 2];
	wr_start();
	wr_ok("x=2:1");
	ok_in("x=3:2", strong[_i / 2 % 2]);
	wr_power_loss(MEMFS_DATA_NONE, _i / 4);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '3');
}

/* ---- 17: refs that are locked while packed-refs is written ---- */

static bool was_packed_locked, was_other_locked;

static void look_at_locks(struct memfs *fs, void *arg)
{
	(void)arg;
	was_packed_locked = memfs_exists(fs, PACKED ".lock");
	was_other_locked = memfs_exists(fs, X ".lock");
}

/* By then, the updates are published and unlocked. */
TEST(no_update_waits_for_packed_refs)
{
	unsigned long n, calls = 1, packed = 0, other = 0;
	struct txn *txns[2];
	size_t i;

	for (n = 0; n < calls; n++) {
		wr_teardown();
		wr_setup_mounted();
		memfs_write(w->fs, PACKED,
		    HEADER "3131313131313131313131313131313131313131"
			   " refs/heads/p\n");
		txns[0] = world_begin(w, "-p:1", false);
		txns[1] = world_begin(w, "x=1:0", false);
		was_packed_locked = was_other_locked = false;
		calls = memfs_nr_calls(w->fs);
		memfs_between(w->fs, n, look_at_locks, NULL);
		world_batch(w, txns, 2);
		calls = memfs_nr_calls(w->fs) - calls;
		ck_assert(!was_packed_locked || !was_other_locked);
		packed += was_packed_locked;
		other += was_other_locked;
		for (i = 0; i < 2; i++) {
			ck_assert_int_eq(txns[i]->updates[0].status, REFD_OK);
			world_done(w, txns[i]);
		}
	}
	ck_assert_uint_gt(packed, 5);
	ck_assert_uint_gt(other, 5);
}
