/*
 * Proves when the objects of a repository count as durable, so that a ref that
 * names an object costs no sync. The condition is a sync of the whole file
 * system. Every directory of the object stores must be older than this sync by
 * a tenth of a second. The time is from one clock, was read before the sync,
 * and was not set back since. In any other case the barrier syncs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/suite.h"
#include "tests/lib/world.h"

#define OBJECTS WORLD_REPO "/objects"
#define OTHER   "/srv/other/objects"
#define MS      (1000 * 1000)

static struct world *w;
static struct repo *repo;

static void setup(void)
{
	enum refd_status status;
	char *why;

	w = world_new(memfs_new(), true);
	memfs_mkdirs(w->fs, OBJECTS "/11");
	memfs_mkdirs(w->fs, OTHER "/22");
	memfs_mkdirs(w->fs, OTHER "/pack");
	memfs_write(w->fs, OBJECTS "/info/alternates", OTHER "\n");
	ck_assert_int_eq(world_start(w), 0);
	repo = repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
	ck_assert_ptr_nonnull(repo);
	memfs_advance(w->fs, 1000 * MS);
}

static void teardown(void)
{
	if (repo != NULL)
		repo_put(&w->store.repos, repo);
	world_free(w);
}

static bool is_clean(void)
{
	ck_assert_int_eq(odb_refresh(repo->odb), 0);
	return barrier_is_clean(&w->store.barriers, repo, 0);
}

static int sync_all(void)
{
	return fs_sync(&w->store.repos, repo->fs, repo->fs->fd);
}

/* Writes an object as git does: a temporary file, linked to its name. */
static void write_object(const char *dir, const char *name)
{
	const struct sys *sys = memfs_other(w->fs);
	char tmp[128], path[128];
	int fd;

	snprintf(tmp, sizeof(tmp), "%s/tmp_obj", dir);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	SYS(sys, mkdirat, AT_FDCWD, dir, 0777);
	fd = SYS(sys, openat, AT_FDCWD, tmp, O_WRONLY | O_CREAT, 0444);
	ck_assert_int_ge(fd, 0);
	SYS(sys, close, fd);
	ck_assert_int_eq(SYS(sys, renameat, AT_FDCWD, tmp, AT_FDCWD, path), 0);
}

static void make_clean(void)
{
	memfs_advance(w->fs, 1000 * MS);
	ck_assert_int_eq(sync_all(), 0);
	ck_assert(is_clean());
}

CASE(.setup = setup, .teardown = teardown);

/* Objects that git wrote before the start may not be on disk. */
TEST(nothing_is_clean_before_the_first_sync)
{
	ck_assert(!is_clean());
	ck_assert_int_eq(sync_all(), 0);
	ck_assert(is_clean());
}

/* In every directory, not only in the directory of the ref's object. */
TEST(a_new_object_anywhere_is_not_clean, .times = 6)
{
	static const char *const dirs[] = { OBJECTS "/11", OBJECTS "/cc",
		OBJECTS "/pack", OTHER "/22", OTHER "/dd", OTHER "/pack" };

	make_clean();
	memfs_advance(w->fs, 1000 * MS);
	write_object(dirs[_i], "new");
	ck_assert(!is_clean());
	/* The object stays new, however old, until a sync. */
	memfs_advance(w->fs, INT64_C(3600000) * MS);
	ck_assert(!is_clean());
	ck_assert_int_eq(sync_all(), 0);
	ck_assert(is_clean());
}

/* Without shallow, which git writes after the objects, they lack parents. git
 * renames the new file to its name, which is the last change of the file. */
TEST(a_new_shallow_is_not_clean)
{
	const struct sys *sys = memfs_other(w->fs);

	memfs_write(w->fs, WORLD_REPO "/shallow.lock", "");
	make_clean();
	memfs_advance(w->fs, 1000 * MS);
	ck_assert_int_eq(SYS(sys, renameat, AT_FDCWD,
			     WORLD_REPO "/shallow.lock", AT_FDCWD,
			     WORLD_REPO "/shallow"),
	    0);
	ck_assert(!is_clean());
	make_clean();
}

/* A push of loose objects costs a stat of its own fan-out, not of 256. */
TEST(the_likely_fanout_is_looked_at_first)
{
	unsigned long calls;

	make_clean();
	memfs_advance(w->fs, 1000 * MS);
	write_object(OBJECTS "/ee", "new");
	ck_assert_int_eq(odb_refresh(repo->odb), 0);
	calls = memfs_nr_calls(w->fs);
	ck_assert(!barrier_is_clean(&w->store.barriers, repo, 0xee));
	ck_assert_uint_lt(memfs_nr_calls(w->fs) - calls, 10);
	/* A wrong guess changes nothing but the cost. */
	ck_assert(!barrier_is_clean(&w->store.barriers, repo, 0x11));
}

/* A small step back of the clock goes unnoticed. The margin of a tenth of a
 * second covers the step: the object looks older than the sync. */
TEST(one_that_looks_a_little_older_is_not_clean)
{
	make_clean();
	memfs_shift_wall(w->fs, -40 * MS);
	write_object(OBJECTS "/11", "new");
	ck_assert(!is_clean());
}

static bool has_arrived;

/* A slow sync goes on for much longer than the margin. */
static void arrive(struct memfs *fs, void *arg)
{
	(void)arg;
	write_object(OBJECTS "/11", "new");
	memfs_advance(fs, 1000 * MS);
	has_arrived = true;
}

/* At any call of a sync, also after the sync has written its directory. */
TEST(one_that_comes_during_a_sync_is_durable_or_not_clean)
{
	struct memfs_choice none = { .data = MEMFS_DATA_NONE };
	int nr_clean = 0;
	unsigned long n;

	for (n = 0;; n++) {
		teardown();
		setup();
		make_clean();
		memfs_advance(w->fs, 1000 * MS);
		has_arrived = false;
		memfs_between(w->fs, n, arrive, NULL);
		ck_assert_int_eq(sync_all(), 0);
		if (!has_arrived)
			break;
		if (!is_clean())
			continue;
		nr_clean++;
		repo_put(&w->store.repos, repo);
		repo = NULL;
		memfs_power_loss(w->fs, &none);
		ck_assert(memfs_exists(w->fs, OBJECTS "/11/new"));
		world_crash(w);
	}
	/* Clean before the clock is read, and after the syncfs at least. */
	ck_assert_int_gt(nr_clean, 0);
	ck_assert_uint_gt(n, 3);
}

/* In the tick of the sync, before or after. */
TEST(one_in_the_same_tick_is_not_clean, .times = 2)
{
	memfs_set_tick(w->fs, 4 * MS);
	make_clean();
	write_object(OBJECTS "/11", "new");
	if (_i == 1)
		ck_assert_int_eq(sync_all(), 0);
	ck_assert(!is_clean());
	make_clean();
}

TEST(a_failed_sync_makes_nothing_clean, .times = 3)
{
	static const enum memfs_call calls[] = { MEMFS_FUTIMENS_NOW,
		MEMFS_FSTAT, MEMFS_SYNCFS };

	make_clean();
	write_object(OBJECTS "/11", "new");
	memfs_advance(w->fs, 1000 * MS);
	memfs_fail_call(w->fs, calls[_i], 0, -EIO);
	ck_assert_int_eq(sync_all(), -EIO);
	memfs_fail_none(w->fs);
	ck_assert(!is_clean());
}

/* After the clock goes back, new objects look older than the sync. */
TEST(nothing_is_clean_after_the_clock_was_set_back)
{
	make_clean();
	memfs_shift_wall(w->fs, -INT64_C(3600000) * MS);
	write_object(OBJECTS "/11", "new");
	ck_assert(!is_clean());
}

/* A directory that is unreadable may have changed. */
TEST(what_can_not_be_seen_is_not_clean)
{
	unsigned long n, calls;
	bool clean;

	make_clean();
	calls = memfs_nr_calls(w->fs);
	ck_assert(barrier_is_clean(&w->store.barriers, repo, 0));
	calls = memfs_nr_calls(w->fs) - calls;
	for (n = 0; n < calls; n++) {
		memfs_fail(w->fs, n, -EIO);
		clean = barrier_is_clean(&w->store.barriers, repo, 0);
		/* A failed close does not count. */
		if (strncmp(memfs_hit(w->fs), "close", 5) != 0)
			ck_assert_msg(!clean, "call %lu: %s", n,
			    memfs_hit(w->fs));
		memfs_fail_none(w->fs);
	}
	ck_assert_uint_gt(n, 5);
}

/* If reading the list of stores fails midway, the list counts as unknown. */
TEST(stores_that_can_not_be_seen_are_no_list)
{
	struct object_stores stores;
	unsigned long n;
	const char *hit;
	int r = -1;

	for (n = 0; r < 0 && n < 100; n++) {
		object_stores_init(&stores, w->sys, repo->fd,
		    &odb_stores(repo->odb)->rule);
		memfs_fail(w->fs, n, -EIO);
		r = object_stores_refresh(&stores);
		hit = memfs_hit(w->fs);
		memfs_fail_none(w->fs);
		/* A failed close does not count. */
		if (r > 0 && hit != NULL && strncmp(hit, "close", 5) == 0)
			r = -1;
		else if (r > 0)
			ck_assert_uint_eq(stores.nr, 2);
		object_stores_done(&stores);
	}
	ck_assert_int_eq(r, 1);
	ck_assert_uint_gt(n, 10);
}
