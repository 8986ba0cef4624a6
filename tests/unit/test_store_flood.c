/*
 * Proves that a repository with endless entries, in the places where recovery
 * looks for locks, delays the start of no other repository. refd reports the
 * repository and defers it. Other repositories are served. Once the entries are
 * gone, this repository is served again. Neither transactions nor checkpoints
 * repeat the search without need, only once a minute.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define MINUTE_NS INT64_C(60000000000)

static struct sys disk;
/* The end of the path of an endless directory, or NULL. */
static const char *_Atomic endless;
static const char *entry_name;
/* The same for an unreadable directory, and the error. */
static const char *_Atomic unread;
static int unread_err;
static _Atomic int64_t ahead_ns; /* of the kernel's clock */
static _Atomic unsigned nr_waits, nr_recovered;
static struct sys_dir *_Atomic flood; /* while being read */
static char other[4200];
static _Atomic unsigned nr_searches;

static bool is_at(const struct sys *sys, const char *end, int dirfd,
    const char *path)
{
	char whole[8400], dir[4096];
	size_t len, end_len;

	if (end == NULL || dirfd == SYS_TRUSTED ||
	    sys_kernel.fd_path(sys, dirfd, dir, sizeof(dir)) < 0)
		return false;
	snprintf(whole, sizeof(whole), "%s/%s", dir, path);
	len = strlen(whole);
	end_len = strlen(end);
	return len >= end_len && strcmp(whole + len - end_len, end) == 0;
}

static int disk_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	int r;

	if (is_at(sys, unread, dirfd, path))
		return unread_err;
	r = sys_kernel.dir_open(sys, dirfd, path, dir);
	if (r == 0 && is_at(sys, endless, dirfd, path)) {
		flood = *dir;
		nr_searches++;
	}
	return r;
}

static int disk_dir_next(const struct sys *sys, struct sys_dir *dir,
    struct sys_dirent *entry)
{
	if (dir != flood)
		return sys_kernel.dir_next(sys, dir, entry);
	*entry = (struct sys_dirent){ entry_name, 1, DT_REG };
	return 1;
}

static void disk_dir_close(const struct sys *sys, struct sys_dir *dir)
{
	if (dir == flood)
		flood = NULL;
	sys_kernel.dir_close(sys, dir);
}

static int disk_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	if (flood != NULL && strcmp(path, entry_name) == 0)
		return -ENOENT;
	return sys_kernel.lstatat(sys, dirfd, path, st);
}

static int64_t disk_now_mono(const struct sys *sys)
{
	return sys_kernel.now_mono(sys) + ahead_ns;
}

static void event(enum store_event event, const char *place, const char *why)
{
	(void)place;
	(void)why;
	nr_waits += event == STORE_REPO_WAITS;
	nr_recovered += event == STORE_REPO_RECOVERED;
}

static void setup(void)
{
	disk = sys_kernel;
	disk.dir_open = disk_dir_open;
	disk.dir_next = disk_dir_next;
	disk.dir_close = disk_dir_close;
	disk.lstatat = disk_lstatat;
	disk.now_mono = disk_now_mono;
	endless = unread = NULL;
	ahead_ns = 0;
	nr_searches = nr_waits = nr_recovered = 0;
	sr_sys = &disk;
	sr_event = event;
	sr_interval_ns = 1000000;
	sr_setup();
	tmp_run("cp -r r.git other.git");
	snprintf(other, sizeof(other), "%s/other.git", tmp_root);
}

static void teardown(void)
{
	sr_teardown();
	sr_sys = &sys_kernel;
	sr_event = NULL;
}

/* A leftover lock makes recovery search the whole repository. */
static void leave_lock(void)
{
	tmp_run("mkdir -p r.git/worktrees && cd r.git/refd/stage && "
		"touch 0000000000000001.0 && ln 0000000000000001.0 y");
}

static struct txn *admit(const char *git_dir)
{
	struct refd_txid id;

	refd_txid_make(&id);
	return sr_admit(&id, git_dir, "refs/heads/x", sr_commit);
}

static void serve(const char *git_dir)
{
	struct txn *txn = admit(git_dir);

	ck_assert_int_eq(txn->refused, REFD_OK);
	sr_done_with(txn);
}

static void refused(const char *why)
{
	struct txn *txn = admit(sr_repo);

	ck_assert_int_eq(txn->refused, REFD_IO);
	ck_assert_msg(strstr(txn->why, why) != NULL, "%s", txn->why);
	sr_done_with(txn);
}

/* Waits until a checkpoint's retry increments COUNT. */
static void wait_for(const _Atomic unsigned *count)
{
	unsigned before = *count;

	while (*count == before)
		serve(other);
}

/* The repository is searched once, and then once a minute, until the entries
 * are gone. */
static void flooded(unsigned searches)
{
	unsigned i;

	for (i = 0; i < 100; i++)
		refused("4,000,000 entries");
	for (i = 0; i < 1000; i++)
		serve(other);
	ck_assert_uint_eq(nr_searches, searches);
	ahead_ns += MINUTE_NS;
	wait_for(&nr_searches);
	for (i = 0; i < 100; i++)
		refused("4,000,000 entries");
	ck_assert_uint_eq(nr_searches, searches + 1);
	endless = NULL;
	ahead_ns += MINUTE_NS;
	wait_for(&nr_recovered);
	serve(sr_repo);
}

static const struct {
	const char *dir, *name;
} floods[] = {
	{ "/r.git/refd/stage/.", "x" },
	/* A name of a future batch. */
	{ "/r.git/refd/stage/.", "7f00000000000000-0" },
	{ "/r.git/refs", "x" },
	{ "/r.git/.", "x" },
	{ "/r.git/worktrees", "x" },
};

CASE(.seconds = 60);

TEST(others_are_served, .times = sizeof(floods) / sizeof(floods[0]))
{
	setup();
	serve(sr_repo);
	serve(other);
	sr_close();
	leave_lock();
	entry_name = floods[_i].name;
	endless = floods[_i].dir;
	sr_open();
	serve(other);
	flooded(1);
	teardown();
}

/* The start did not search the repository. */
TEST(a_later_flood_is_found_once)
{
	setup();
	entry_name = "7f00000000000000-0";
	endless = "/r.git/refd/stage/.";
	refused("4,000,000 entries");
	ck_assert_uint_eq(nr_waits, 1);
	flooded(1);
	ck_assert_uint_eq(nr_waits, 1);
	teardown();
}

/* Without a retry by checkpoints, a transaction searches, but rarely. */
TEST(a_moved_one_is_searched_by_a_transaction)
{
	setup();
	entry_name = "7f00000000000000-0";
	endless = "/r.git/refd/stage/.";
	refused("4,000,000 entries");
	sr_close();
	sr_open();
	tmp_run("mv r.git moved.git");
	snprintf(sr_repo, sizeof(sr_repo), "%s/moved.git", tmp_root);
	refused("4,000,000 entries");
	endless = NULL;
	ahead_ns += 10 * MINUTE_NS;
	serve(sr_repo);
	teardown();
}

/* A different limit has its own message, and every checkpoint tries again. A
 * failed search is forgotten once a later search succeeds. */
TEST(another_bound_is_not_taken_for_it, .times = 2)
{
	setup();
	serve(sr_repo);
	sr_close();
	leave_lock();
	unread_err = -E2BIG;
	unread = "/r.git/worktrees";
	if (_i == 1) {
		entry_name = "x";
		endless = "/r.git/refs";
	}
	sr_open();
	if (_i == 1) {
		refused("4,000,000 entries");
		endless = NULL;
		ahead_ns += MINUTE_NS;
		wait_for(&nr_waits);
	}
	refused("10,000 directories");
	unread = NULL;
	wait_for(&nr_recovered);
	serve(sr_repo);
	teardown();
}
