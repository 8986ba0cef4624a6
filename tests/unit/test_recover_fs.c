/*
 * Proves that refd trusts no file system that failed to sync or that was
 * mounted again. No update there is acknowledged until the records of the file
 * system were redone from the contents of the disk. The running daemon or the
 * next start redoes them. refd removes its own locks that come back with the
 * disk. Records on other file systems do not wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/deferred/deferred_fs.h"
#include "daemon/store/refs/token.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

/* The memory has everything, as clean pages. The disk has nothing. */
static void fail_to_sync(void)
{
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_lt(world_tick(w), 0);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_ptr_null(world_apply(w, "y=1", false));
}

static void assert_all_is_there(void)
{
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
	ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
	ck_assert_int_eq(world_ref(w, "gone"), '0');
}

/* No record is deferred any more, and the disk alone has every value. */
static void assert_all_is_synced(void)
{
	ck_assert_uint_eq(w->deferred, 0);
	assert_all_is_there();
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 0);
	assert_all_is_there();
}

static void prepare(void)
{
	wr_ok("gone=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("-gone:1");
	wr_ok("x=1");
	wr_ok("x=2:1");
}

CASE(.setup = wr_setup_mounted, .teardown = wr_teardown, .seconds = 60);

TEST(what_failed_to_sync_is_written_again, .times = 3)
{
	uint64_t last;
	int i;

	prepare();
	last = journal_last_lsn(w->store.journal);
	fail_to_sync();
	/* Once the file system is out of use, its records are deferred. */
	ck_assert_int_eq(world_tick(w), 0);
	ck_assert_uint_ge(journal_forgotten(w->store.journal), last);
	for (i = 0; i < _i; i++) {
		/* The first syncfs decides whether the file system may be used
		 * at all. */
		memfs_fail_call(w->fs, MEMFS_SYNCFS, 1, -EIO);
		ck_assert_int_lt(world_retry(w), 0);
		ck_assert(memfs_was_hit(w->fs));
		memfs_fail_none(w->fs);
		ck_assert_int_eq(world_tick(w), 0);
	}
	ck_assert_int_eq(world_retry(w), 0);
	assert_all_is_synced();
}

/* The next start knows of the failure, too. */
TEST(a_crash_forgets_no_failure)
{
	prepare();
	fail_to_sync();
	ck_assert_int_eq(world_tick(w), 0);
	ck_assert_int_eq(scripted_crash(w), 0);
	assert_all_is_synced();
}

/* The daemon is killed before any record was deferred. */
TEST(a_crash_right_after_it_forgets_no_failure)
{
	prepare();
	fail_to_sync();
	ck_assert_int_eq(scripted_crash(w), 0);
	assert_all_is_synced();
}

static void put_back(unsigned mount)
{
	const struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };

	memfs_put_back(w->fs, mount, &nothing);
}

TEST(a_snapshot_of_a_repository_lacks_what_was_in_memory)
{
	prepare();
	world_crash(w);
	put_back(wr_home);
	wr_start();
	assert_all_is_there();
}

/* The redo fails at rename N. Whatever the start made of it, the redo after
 * that counts the repository as a copy, too. */
static bool fail_redo(unsigned long n)
{
	bool hit;

	world_free(w);
	wr_setup_mounted();
	prepare();
	world_crash(w);
	put_back(wr_home);
	memfs_fail_call(w->fs, MEMFS_RENAMEAT, n, -EIO);
	if (world_start(w) != 0) {
		memfs_fail_none(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		assert_all_is_there();
		return true;
	}
	hit = memfs_was_hit(w->fs);
	memfs_fail_none(w->fs);
	if (w->deferred > 0)
		ck_assert_int_eq(world_retry(w), 0);
	assert_all_is_there();
	return hit;
}

TEST(a_snapshot_whose_redo_fails)
{
	unsigned long n = 0;

	while (fail_redo(n))
		n++;
	ck_assert_uint_gt(n, 1);
}

/* The device of the repository has the number of the former one, so only the
 * journal tells. */
TEST(a_snapshot_of_the_journal_lacks_what_was_in_memory)
{
	prepare();
	world_crash(w);
	put_back(wr_home);
	put_back(wr_home);
	put_back(wr_home + 1); /* of the journal */
	wr_start();
	assert_all_is_there();
}

static int (*memfs_syncfs)(const struct sys *sys, int fd);
static unsigned long crash_after;

/* The daemon is killed soon after the failure. */
static int sync_and_crash(const struct sys *sys, int fd)
{
	int r = memfs_syncfs(sys, fd);

	if (r < 0)
		memfs_crash_at(w->fs, crash_after);
	return r;
}

/* Recovery from a power loss writes the values into a new life of the memory.
 * The records have the life before, which did not fail. */
TEST(a_failed_sync_of_a_start_is_not_forgotten, .times = 6)
{
	struct sys *sys = (struct sys *)(uintptr_t)w->sys;

	prepare();
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_syncfs = sys->syncfs;
	sys->syncfs = sync_and_crash;
	crash_after = (unsigned long)_i;
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_lt(world_start(w), 0);
	sys->syncfs = memfs_syncfs;
	ck_assert_int_eq(scripted_crash(w), 0);
	assert_all_is_synced();
}

static int (*memfs_renameat)(const struct sys *sys, int from_fd,
    const char *from, int to_fd, const char *to);

static int rename_all_but_y(const struct sys *sys, int from_fd,
    const char *from, int to_fd, const char *to)
{
	const size_t len = strlen(to);

	if (len > 0 && to[len - 1] == 'y')
		return -EROFS;
	return memfs_renameat(sys, from_fd, from, to_fd, to);
}

/* Of two refs one is written, the other one cannot be, and then the sync of
 * both fails. */
TEST(a_failed_sync_after_half_a_recovery)
{
	struct sys *sys = (struct sys *)(uintptr_t)w->sys;

	prepare();
	wr_ok("y=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_renameat = sys->renameat;
	sys->renameat = rename_all_but_y;
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_eq(world_start(w), 0);
	sys->renameat = memfs_renameat;
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_uint_gt(w->deferred, 0);
	ck_assert_int_eq(world_tick(w), 0);
	ck_assert_int_eq(world_retry(w), 0);
	assert_all_is_synced();
	ck_assert_int_eq(world_ref(w, "y"), '1');
}

static int keep_cache(const struct sys *sys, int fd)
{
	(void)sys;
	(void)fd;
	return 0;
}

/* The kernel keeps pages that are in use. A read then shows the value in
 * memory, which the disk lacks. */
TEST(an_equal_value_is_written_again)
{
	prepare();
	fail_to_sync();
	((struct sys *)(uintptr_t)w->sys)->drop_cache = keep_cache;
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '2');
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 0);
	ck_assert_int_eq(world_ref(w, "x"), '2');
}

/* The file system stayed in memory. A missing ref without our lock was
 * therefore published and then deleted by another writer. A ref that still has
 * its lock was never published. */
TEST(a_crash_undoes_no_deletion)
{
	prepare();
	wr_ok("y=1");
	wr_ok("z=1");
	fail_to_sync();
	wr_unlink(WORLD_REPO "/refs/heads/y");
	wr_unlink(WORLD_REPO "/logs/refs/heads/y");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "y"), '0');
	ck_assert_int_eq(world_ref(w, "z"), '1');
	wr_expect_locks("");
	assert_all_is_synced();
	ck_assert_int_eq(world_ref(w, "y"), '0');
	ck_assert_int_eq(world_ref(w, "z"), '1');
	ck_assert_int_eq(world_log_count(w, "y", '0', '1'), 0);
}

static void write_unsynced(const char *path, const char *text)
{
	int fd = SYS(w->sys, openat, AT_FDCWD, path,
	    O_WRONLY | O_CREAT | O_TRUNC, 0666);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(SYS(w->sys, write_all, fd, text, strlen(text)), 0);
	SYS(w->sys, close, fd);
}

/* A git that packed refs did not sync. The write-back failed and its
 * packed-refs is gone, and those refs have no loose file. They were not
 * deleted. */
TEST(a_crash_loses_nothing_that_was_packed)
{
	prepare();
	wr_ok("y=1");
	write_unsynced(WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/y\n");
	wr_unlink(WORLD_REPO "/refs/heads/y");
	ck_assert_int_eq(world_ref(w, "y"), '1');
	fail_to_sync();
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "y"), '1');
	assert_all_is_synced();
	ck_assert_int_eq(world_ref(w, "y"), '1');
}

/* As above, but the file is broken, and starts are killed at one change after
 * another until a start reaches its end. */
TEST(a_crashed_start_loses_nothing_that_was_packed)
{
	unsigned long i;
	bool hit = true;

	for (i = 0; hit; i++) {
		wr_teardown();
		wr_setup_mounted();
		prepare();
		wr_ok("y=1");
		fail_to_sync();
		memfs_write(w->fs, WORLD_REPO "/packed-refs", "garbage\n");
		wr_unlink(WORLD_REPO "/refs/heads/y");
		memfs_crash(w->fs);
		world_crash(w);
		memfs_crash_at(w->fs, i);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_int_eq(world_ref(w, "y"), '1');
	}
	ck_assert_uint_gt(i, 20);
}

#define PACKED_X1                                                              \
	"# pack-refs with: peeled fully-peeled sorted \n"                      \
	"3131313131313131313131313131313131313131 refs/heads/x\n"              \
	"3131313131313131313131313131313131313131 refs/heads/gone\n"

/* Another writer moved a ref back to the earlier value, recreated a ref that we
 * had deleted, and packed both. */
TEST(a_crash_undoes_no_packed_value)
{
	prepare();
	fail_to_sync();
	memfs_write(w->fs, WORLD_REPO "/packed-refs", PACKED_X1);
	wr_unlink(WORLD_REPO "/refs/heads/x");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_ref(w, "gone"), '1');
}

/* The daemon is killed at each point between the failed sync and the deferral.
 * Records that were not yet deferred are redone as well. */
TEST(a_crash_anywhere_forgets_no_failure)
{
	struct sys_stat st;
	unsigned long i;
	bool hit = true;

	for (i = 0; hit; i++) {
		wr_teardown();
		wr_setup_mounted();
		prepare();
		memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
		memfs_crash_at(w->fs, i);
		world_tick(w);
		world_tick(w);
		hit = SYS(w->sys, lstatat, AT_FDCWD, "/", &st) < 0;
		memfs_fail_none(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		assert_all_is_synced();
	}
	ck_assert_uint_gt(i, 5);
}

/* A later value of a foreign writer wins, as after any crash. Only values that
 * were not yet deferred may be lost. */
TEST(what_came_after_a_failure_is_as_ever)
{
	prepare();
	fail_to_sync();
	ck_assert_int_eq(world_tick(w), 0);
	ck_assert_int_eq(world_retry(w), 0);
	wr_ok("y=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("y=2:1");
	wr_unlink(WORLD_REPO "/refs/heads/y");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "y"), '0');
	assert_all_is_there();
}

TEST(a_start_whose_sync_fails_is_not_believed)
{
	prepare();
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	wr_start();
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_uint_gt(w->deferred, 0);
	world_tick(w);
	ck_assert_int_eq(world_retry(w), 0);
	assert_all_is_synced();
}

/* ---- another mount ---- */

/* As a writer there does. */
static struct repo *get_repo(void)
{
	enum refd_status status;
	struct repo *repo;
	char *why;

	repo = repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
	ck_assert_ptr_nonnull(repo);
	ck_assert_int_eq(deferred_fs_check(w->store.deferred, repo), 0);
	return repo;
}

TEST(what_came_back_as_another_mount_is_redone, .times = 2)
{
	struct repo *repo;

	prepare();
	wr_remount();
	ck_assert_int_eq(world_ref(w, "x"), '0');
	if (_i == 0) {
		/* A checkpoint notices the new mount first. */
		ck_assert_int_lt(world_tick(w), 0);
		ck_assert_int_eq(world_tick(w), 0);
	} else {
		/* Or a writer notices the new mount. */
		repo = get_repo();
		ck_assert(deferred_blocks_writes(w->store.deferred, repo->id));
		repo_put(&w->store.repos, repo);
	}
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	assert_all_is_there();
	wr_ok("y=1");
	world_tick(w);
	ck_assert_int_eq(world_tick(w), 0);
}

static uint64_t life;

static int same_life(const struct sys *sys, int fd, uint64_t *id)
{
	(void)sys;
	(void)fd;
	*id = life;
	return 0;
}

/* Subvolumes of a btrfs have several devices and one life. One of them failed,
 * and work goes on in the other one. */
TEST(another_subvolume_defers_nothing_here)
{
	struct sys *sys = (struct sys *)(uintptr_t)w->sys;
	struct repos *repos = &w->store.repos;
	struct repo *repo = get_repo();
	struct fs *other;
	int fd;

	life = repo->fs->mount;
	sys->mount_id = same_life;
	fd = SYS(sys, openat, AT_FDCWD, "/state", O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fs_of(repos, fd, &other), 0);
	SYS(sys, close, fd);
	ck_assert_ptr_ne(other, repo->fs);
	wr_ok("x=1");
	fs_fail(repos, other, -EIO);
	deferred_fs_let_go(w->store.deferred);
	ck_assert_int_eq(other->state, FS_GONE);
	wr_ok("-x:1");
	repo_put(repos, repo);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
}

static void remount(void)
{
	wr_remount();
	repo_put(&w->store.repos, get_repo());
}

/* The dead disk comes back with its contents from before the test. */
static void come_back(void)
{
	remount();
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
}

/* The same, and another writer is at work there. */
static void come_back_locked(void)
{
	static const char lock[] = WORLD_REPO "/refs/heads/z.lock";

	remount();
	memfs_write(w->fs, lock, "");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_int_eq(world_ref(w, "z"), '0');
	wr_unlink(lock);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
}

/* A disk dies while a transaction is published. The refs are there, and some
 * log lines are missing. The missing lines are deferred before the records
 * are. */
TEST(a_line_that_is_owed_hides_no_value, .times = 2)
{
	unsigned long n;
	bool hit = true;
	unsigned owed = 0;

	for (n = 0; hit; n++) {
		wr_teardown();
		wr_setup_mounted();
		wr_ok("a=1");
		ck_assert_int_eq(world_checkpoint(w), 0);
		hit = wr_fail_write("x=1:0;y=1:0;z=1:0", true, n, -EIO);
		if (w->owed == 0)
			continue;
		owed++;
		if (_i == 0)
			come_back();
		else
			come_back_locked();
		ck_assert_int_eq(world_ref(w, "x"), '1');
		ck_assert_int_eq(world_ref(w, "y"), '1');
		ck_assert_int_eq(world_ref(w, "z"), '1');
		ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
		ck_assert_int_eq(world_log_count(w, "y", '0', '1'), 1);
		ck_assert_int_eq(world_log_count(w, "z", '0', '1'), 1);
	}
	ck_assert_uint_ge(owed, 3);
}

/* An admission finds the new mount first and redoes the records. The checkpoint
 * that finds the dead mount later must not redo them: other writers may have
 * changed the refs since. */
TEST(what_was_redone_is_not_redone_again, .times = 2)
{
	prepare();
	come_back();
	assert_all_is_there();
	wr_ok("-x:2");
	wr_ok("gone=2:0");
	wr_ok("-gone:2");
	while (world_tick(w) < 0)
		;
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_ref(w, "gone"), '0');
	if (_i == 0)
		ck_assert_int_eq(scripted_crash(w), 0);
	else
		wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_ref(w, "gone"), '0');
}

/* ---- locks ---- */

static bool is_locked(const char *path)
{
	struct sys_stat st;
	char lock[128];

	snprintf(lock, sizeof(lock), WORLD_REPO "/%s.lock", path);
	return SYS(w->sys, lstatat, AT_FDCWD, lock, &st) == 0;
}

/* As a batch that began now would. */
static void lock(struct repo *repo, const char *path)
{
	struct token token;

	ck_assert_int_eq(token_init(&token, w->sys, repo->stage_fd,
			     pipeline_next_token(w->store.pipeline)),
	    0);
	ck_assert_int_eq(token_lock(&token, repo->fd, path, 0777), 0);
}

/* The locks belong to a batch that left no record. The dead disk has them. */
TEST(locks_that_come_back_with_the_disk_go)
{
	struct repo *repo = get_repo();

	ck_assert(!deferred_blocks_writes(w->store.deferred, repo->id));
	lock(repo, "packed-refs");
	lock(repo, "refs/heads/x");
	repo_put(&w->store.repos, repo);
	scripted_sync(w);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert(is_locked("refs/heads/x"));
	wr_remount();
	ck_assert(is_locked("packed-refs") && is_locked("refs/heads/x"));
	repo = get_repo();
	ck_assert(deferred_blocks_writes(w->store.deferred, repo->id));
	/* A batch that began after the remount is at work: its locks stay. */
	lock(repo, "refs/heads/y");
	repo_put(&w->store.repos, repo);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert(!is_locked("packed-refs") && !is_locked("refs/heads/x"));
	ck_assert(is_locked("refs/heads/y"));
	wr_ok("x=1:0");
}
