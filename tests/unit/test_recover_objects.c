/*
 * Proves that the objects of an acknowledged push survive a power loss when
 * only the record has the objects: whatever the disk kept of objects, refs and
 * names, also if recovery fails or the power fails again. A good file of a
 * different form may be replaced, and nothing is restored after a crash. The
 * journal keeps the objects as long as a replay may need them, and no longer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/lack_rig.h"
#include "tests/lib/loose_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define OBJECTS WORLD_REPO "/objects"
#define REF     WORLD_REPO "/refs/heads/x"
#define MS      (1000 * 1000)

static struct loose_help one, two;

/* Everything on the disk of the repositories is durable, and old. */
static void settle(void)
{
	struct repo *repo = world_repo(w, WORLD_REPO);

	ck_assert_ptr_nonnull(repo);
	memfs_advance(w->fs, 1000 * MS);
	ck_assert_int_eq(fs_sync(&w->store.repos, repo->fs, repo->fs->fd), 0);
	memfs_advance(w->fs, 1000 * MS);
	repo_put(&w->store.repos, repo);
}

static void setup(void)
{
	wr_setup_apart();
	memfs_mkdirs(w->fs, OBJECTS "/pack");
	one = loose_help_text(OBJECTS, "one");
	two = loose_help_text(OBJECTS, "two");
	wr_ok("first=1");
	settle();
}

static void teardown(void)
{
	loose_help_done(&one);
	loose_help_done(&two);
	wr_teardown();
}

/* As a push of object ONE and TWO, and of refs by SPEC. Returns the LSN of the
 * record. */
static uint64_t push(const char *spec)
{
	struct txn *txn = world_begin(w, spec, false);
	uint64_t lsn;

	ck_assert_ptr_nonnull(txn);
	if (!memfs_exists(w->fs, one.path))
		loose_help_write(w->fs, &one);
	loose_help_write(w->fs, &two);
	ck_assert_int_ge(odb_refresh(txn->repo->odb), 0);
	ck_assert(barrier_copy(&w->store.barriers, txn->repo, &txn->objects));
	ck_assert_ptr_nonnull(txn->objects);
	world_batch(w, &txn, 1);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	lsn = journal_last_lsn(w->store.journal);
	return lsn;
}

static bool journal_has(uint64_t lsn)
{
	uint8_t *bytes;
	size_t len;

	ck_assert_int_eq(
	    journal_read_objects(w->store.journal, lsn, &bytes, &len), 0);
	free(bytes);
	return len > 0;
}

static void objects_are_there(void)
{
	struct sys_stat st;

	ck_assert(loose_help_holds(w->fs, &one));
	ck_assert(loose_help_holds(w->fs, &two));
	SYS(memfs_other(w->fs), lstatat, AT_FDCWD, one.path, &st);
	ck_assert_uint_eq(st.mode & 07777, 0444);
}

/* ---- power losses ---- */

static const enum memfs_data kinds[] = { MEMFS_DATA_NONE, MEMFS_DATA_ALL,
	MEMFS_DATA_NULS, MEMFS_DATA_TORN, MEMFS_DATA_MIXED };

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

/* The disk keeps any number of names, and any data. */
TEST(every_cut, .times = 5)
{
	size_t pending = 1, keep;
	unsigned restored = 0;

	for (keep = 0; keep <= pending; keep++) {
		teardown();
		setup();
		push("x=1");
		pending = memfs_nr_pending(w->fs, wr_home);
		wr_power_loss_and_start(kinds[_i], (long)keep);
		objects_are_there();
		ck_assert_int_eq(world_ref(w, "x"), '1');
		ck_assert_uint_eq(w->deferred, 0);
		restored += w->found[STORE_OBJECTS_RESTORED] > 0;
		/* The restored objects are durable now. */
		wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
		objects_are_there();
		ck_assert_uint_eq(w->found[STORE_OBJECTS_RESTORED], 0);
	}
	ck_assert_uint_gt(pending, 5);
	ck_assert_uint_gt(restored, 1);
}

/* The power fails again at each change that recovery makes. */
TEST(cuts_of_recovery, .times = 5)
{
	struct memfs_choice nothing = { .data = kinds[_i] };
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		teardown();
		setup();
		push("x=1");
		wr_power_loss(kinds[_i], 0);
		memfs_power_loss_at(w->fs, n);
		if (world_start(w) == 0)
			objects_are_there();
		hit = memfs_was_hit(w->fs);
		nothing.keep[wr_home] = (long)n % 7;
		memfs_power_loss(w->fs, &nothing);
		world_crash(w);
		wr_start();
		objects_are_there();
		ck_assert_int_eq(world_ref(w, "x"), '1');
	}
	ck_assert_uint_gt(n, 20);
}

/* A call of recovery fails. The records wait, or the start fails, and the next
 * start does the rest. Nothing is lost meanwhile. */
TEST(failures_of_recovery, .times = 2)
{
	const int err = _i == 0 ? -EIO : -ENOSPC;
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		teardown();
		setup();
		push("x=1");
		wr_power_loss(MEMFS_DATA_TORN, 3);
		memfs_fail(w->fs, n, err);
		if (world_start(w) == 0 && w->deferred == 0)
			objects_are_there();
		hit = memfs_was_hit(w->fs);
		memfs_fail_none(w->fs);
		wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
		objects_are_there();
		ck_assert_int_eq(world_ref(w, "x"), '1');
		ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
	}
	ck_assert_uint_gt(n, 50);
}

/* As git made file and directory, whoever sends the update. */
TEST(modes)
{
	const struct sys *sys = memfs_other(w->fs);
	struct sys_stat st;
	char dir[256];
	int fd;

	snprintf(dir, sizeof(dir), OBJECTS "/%s", one.fanout);
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, dir, 0770), 0);
	loose_help_write(w->fs, &one);
	fd = SYS(sys, openat, AT_FDCWD, one.path, O_RDONLY, 0);
	ck_assert_int_eq(SYS(sys, fchmod, fd, 0440), 0);
	SYS(sys, close, fd);
	push("x=1");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	SYS(sys, lstatat, AT_FDCWD, one.path, &st);
	ck_assert_uint_eq(st.mode & 07777, 0440);
	SYS(sys, lstatat, AT_FDCWD, dir, &st);
	ck_assert_uint_eq(st.mode & 07777, 0770);
	SYS(sys, lstatat, AT_FDCWD, two.path, &st);
	ck_assert_uint_eq(st.mode & 07777, 0444);
}

/* ---- files that are there ---- */

static uint64_t ino_of(const char *path)
{
	struct sys_stat st = { .ino = 0 };

	SYS(memfs_other(w->fs), lstatat, AT_FDCWD, path, &st);
	return st.ino;
}

TEST(only_what_differs_is_written)
{
	struct loose_help other = loose_help_make(OBJECTS, "blob", "one", 3, 0);
	uint64_t ino;

	push("x=1");
	ck_assert_uint_ne(other.len, one.len);
	loose_help_write(w->fs, &other);
	settle();
	ino = ino_of(two.path);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	objects_are_there();
	ck_assert_uint_eq(ino_of(two.path), ino);
	ck_assert_uint_eq(w->found[STORE_OBJECTS_RESTORED], 1);
	loose_help_done(&other);
}

/* The page cache is exact: an absent object was packed. */
TEST(a_crash_restores_nothing)
{
	push("x=1");
	wr_unlink(one.path);
	memfs_crash(w->fs);
	world_crash(w);
	wr_start();
	ck_assert(!memfs_exists(w->fs, one.path));
	ck_assert_uint_eq(w->found[STORE_OBJECTS_RESTORED], 0);
}

/* The disk of a running daemon comes back without the objects. */
TEST(a_disk_that_comes_back)
{
	push("x=1");
	wr_remount();
	ck_assert(!memfs_exists(w->fs, one.path));
	memfs_crash(w->fs);
	world_crash(w);
	wr_start();
	objects_are_there();
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* ---- pruned history ---- */

#define PRUNED "7070707070707070707070707070707070707070"
#define OLD    "3131313131313131313131313131313131313131"

/* In this world the object PRUNED is missing, and every other object exists. */
static struct loose_help commit_on(const char *parent)
{
	char text[300];

	snprintf(text, sizeof(text),
	    "tree " OLD "\nparent %s\nauthor a <a> 1 +0000\n", parent);
	return loose_help_make(OBJECTS, "commit", text, strlen(text), 6);
}

/* The ref was deleted later and its history pruned, or the repository is an
 * older backup. A commit without its parent would break the repository. In a
 * group the ref gets its value, and the record may have the only copy. */
TEST(a_value_without_its_history, .times = 4)
{
	struct txn *txn = world_begin(w, _i == 3 ? "x=1;y=1" : "x=1", false);
	struct refd_update *ask;
	size_t i;

	if (_i >= 2)
		lack_join();
	loose_help_done(&one);
	one = commit_on(_i == 0 ? OLD : PRUNED);
	for (i = 0; i < txn->nr_updates; i++) {
		ask = (struct refd_update *)(uintptr_t)txn->updates[i].ask;
		ask->new_oid = one.oid;
	}
	loose_help_write(w->fs, &one);
	loose_help_write(w->fs, &two);
	ck_assert_int_ge(odb_refresh(txn->repo->odb), 0);
	ck_assert(barrier_copy(&w->store.barriers, txn->repo, &txn->objects));
	world_batch(w, &txn, 1);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	/* Only y gets the value. */
	if (_i == 3)
		wr_ok("x=2");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(loose_help_holds(w->fs, &one), _i != 1);
	ck_assert_uint_eq(w->found[STORE_OBJECT_LACKING], _i >= 2);
	ck_assert(loose_help_holds(w->fs, &two));
	ck_assert_uint_eq(w->deferred, 0);
}

/* ---- deferred ---- */

/* The record waits for another writer's lock, and keeps its objects. */
TEST(objects_of_a_deferred_row)
{
	uint64_t lsn = push("x=1");

	memfs_write(w->fs, REF ".lock", "");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->deferred, 1);
	objects_are_there();
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert(journal_has(lsn));
	wr_unlink(one.path);
	settle();
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	objects_are_there();
	/* The sync after this replay has made them durable. Later replays do
	 * not bring back objects that git has packed. */
	ck_assert_uint_eq(w->deferred, 1);
	wr_unlink(one.path);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert(!memfs_exists(w->fs, one.path));
	loose_help_write(w->fs, &one);
	wr_unlink(REF ".lock");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert(!journal_has(lsn));
}

/* An object cannot be restored: no room, or something is in the place of the
 * directory. All records of the repository wait. */
TEST(what_can_not_be_restored, .times = 3)
{
	const struct sys *sys = memfs_other(w->fs);

	push("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	if (_i == 0) {
		memfs_set_room(w->fs, wr_home, 0, -1);
	} else {
		ck_assert_int_eq(SYS(sys, renameat, AT_FDCWD, OBJECTS, AT_FDCWD,
				     WORLD_REPO "/away"),
		    0);
		if (_i == 1)
			memfs_symlink(w->fs, "away", OBJECTS);
		else if (_i == 2)
			memfs_write(w->fs, OBJECTS, "");
	}
	wr_start();
	ck_assert_uint_eq(w->deferred, 2);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_checkpoint(w), 0);
	if (_i == 0) {
		memfs_set_room(w->fs, wr_home, -1, -1);
	} else {
		SYS(sys, unlinkat, AT_FDCWD, OBJECTS);
		SYS(sys, renameat, AT_FDCWD, WORLD_REPO "/away", AT_FDCWD,
		    OBJECTS);
	}
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	objects_are_there();
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* ---- the journal ---- */

TEST(forgotten_with_the_row)
{
	uint64_t lsn = push("x=1"), flushes;
	struct journal_stats stats;

	ck_assert(journal_has(lsn));
	ck_assert(!journal_has(lsn - 1));
	ck_assert_int_eq(world_tick(w), 0);
	/* The forgotten LSN is written with the next commit. */
	ck_assert(journal_has(lsn));
	wr_ok("y=1");
	journal_stats(w->store.journal, &stats);
	flushes = stats.flushes;
	ck_assert_int_eq(journal_drop_objects(w->store.journal), 0);
	ck_assert(!journal_has(lsn));
	journal_stats(w->store.journal, &stats);
	ck_assert_uint_eq(stats.flushes, flushes);
	ck_assert(!journal_is_unflushed(w->store.journal));
	/* The disk may lose the deletion. Nobody misses the objects. */
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_OBJECTS_RESTORED], 0);
	objects_are_there();
}

/* A transaction without a new value needs no objects. */
TEST(rows_without_a_value)
{
	uint64_t lsn;

	wr_ok("x=1");
	lsn = push("-x");
	ck_assert(!journal_has(lsn));
}
