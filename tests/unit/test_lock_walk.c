/*
 * Proves that the walk for locks (lock_walk.h) sees every lock of refs in a
 * repository and its worktrees, and follows no link, also in the place of
 * worktrees/. A lock that vanishes is left out. A directory that cannot be read
 * ends the walk for locks, but not the walk through a tree. Names that are too
 * deep hide no other lock, and endless names end the walk.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/repos/lock_walk.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct sys disk;
static struct repo repo;
static size_t left;
/* The lock that vanishes before anybody looks at it, the directory that cannot
 * be read, and the name on a damaged sector; or NULL. */
static const char *vanishing, *unreadable, *damaged;
static bool hides_types;
static char found[8192];

static int disk_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	if (unreadable != NULL && strcmp(path, unreadable) == 0)
		return -EACCES;
	return sys_kernel.dir_open(sys, dirfd, path, dir);
}

static int disk_dir_next(const struct sys *sys, struct sys_dir *dir,
    struct sys_dirent *entry)
{
	int r = sys_kernel.dir_next(sys, dir, entry);

	if (r > 0 && hides_types)
		entry->type = DT_UNKNOWN;
	return r;
}

static int disk_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	if (vanishing != NULL && strcmp(path, vanishing) == 0)
		SYS(sys, unlinkat, dirfd, path);
	if (damaged != NULL && strcmp(path, damaged) == 0)
		return -EIO;
	return sys_kernel.lstatat(sys, dirfd, path, st);
}

static void setup(void)
{
	tmp_setup();
	disk = sys_kernel;
	disk.dir_open = disk_dir_open;
	disk.dir_next = disk_dir_next;
	disk.lstatat = disk_lstatat;
	repo.fd = tmp_fd;
	left = LOCK_WALK_WORK;
	vanishing = unreadable = damaged = NULL;
	hides_types = false;
	found[0] = '\0';
	tmp_put("HEAD", "");
	tmp_put("HEAD.lock", "");
	tmp_put("refs/heads/a/b", "");
	tmp_put("refs/heads/a/b.lock", "12");
	tmp_put("reftable/tables.list.lock", "");
}

static unsigned nr_long; /* names that are too long */

static int count(void *arg, const struct lock_file *f)
{
	(void)arg;
	nr_long += f->err == -ENAMETOOLONG;
	return 0;
}

static int note(void *arg, const struct lock_file *f)
{
	size_t len = strlen(found);
	struct sys_stat st = { 0 };

	ck_assert_ptr_null(arg);
	sys_kernel.lstatat(&disk, f->place->dirfd, f->path, &st);
	ck_assert_int_lt(strlen(f->path) + 40, sizeof(found) - len);
	snprintf(found + len, sizeof(found) - len, "[%s:%s %d %llu]",
	    f->place->worktree, f->path, f->err,
	    (unsigned long long)(f->err == 0 ? st.size : 0));
	return 0;
}

static int walk_locks(void)
{
	struct ref_places places = { 0 };
	int r;

	found[0] = '\0';
	r = lock_walk(&disk, &repo, &places, &left, note, NULL);
	lock_places_close(&places, &disk);
	return r;
}

static void has(const char *what, unsigned nr)
{
	const char *at = found;
	unsigned k = 0;

	for (; (at = strstr(at, what)) != NULL; at++)
		k++;
	ck_assert_msg(k == nr, "%u times %s in %s", k, what, found);
}

CASE(.setup = setup, .teardown = tmp_teardown);

/* Git's "<file>~pid.lock" is no lock. */
TEST(all_places, .times = 2)
{
	hides_types = _i == 1;
	tmp_put("refs/heads/a~pid.lock", "pid 1\n");
	tmp_put("logs/HEAD.lock", "");
	tmp_put("worktrees/w/HEAD.lock", "");
	tmp_put("worktrees/w/refs/bisect/bad.lock", "1");
	tmp_put("worktrees/v/reftable/tables.list.lock", "");
	tmp_put("worktrees/file.lock", "");
	tmp_mkdir("refs/tags/dir.lock");
	tmp_run("ln -s nowhere refs/tags/link.lock");
	ck_assert_int_eq(walk_locks(), 0);
	has("[:HEAD.lock 0 0]", 1);
	has("[:refs/heads/a/b.lock 0 2]", 1);
	has("[:reftable/tables.list.lock 0 0]", 1);
	has("[:refs/tags/link.lock 0 7]", 1);
	has("[w:HEAD.lock 0 0]", 1);
	has("[w:refs/bisect/bad.lock 0 1]", 1);
	has("[v:reftable/tables.list.lock 0 0]", 1);
	has("[", 7);
}

TEST(no_link_is_followed, .times = 2)
{
	size_t work = SIZE_MAX;
	struct ref_places places = { 0 };

	hides_types = _i == 1;
	tmp_put("other/w/HEAD.lock", "");
	tmp_run("ln -s other worktrees && ln -s ../other refs/link");
	ck_assert_int_eq(walk_locks(), 0);
	has("[", 3);
	ck_assert_int_eq(lock_places_open(&places, &disk, &repo, &work),
	    -ELOOP);
	lock_places_close(&places, &disk);
	tmp_run("rm worktrees && mkdir worktrees && "
		"ln -s ../other/w worktrees/w");
	ck_assert_int_eq(walk_locks(), 0);
	has("[", 3);
}

TEST(a_lock_vanishes)
{
	vanishing = "refs/heads/a/b.lock";
	hides_types = true;
	ck_assert_int_eq(walk_locks(), 0);
	has("[", 2);
	ck_assert(!tmp_exists(vanishing));
}

TEST(a_directory_that_cannot_be_read)
{
	const struct ref_place place = { tmp_fd, "" };

	unreadable = "refs/heads/z";
	tmp_put("refs/tags/t", "");
	/* Before and behind the directory, whatever order a file system has. */
	tmp_run("cd refs/heads && touch b c d e f g && mv a z && touch h i j");
	ck_assert_int_eq(walk_locks(), -EACCES);
	has("refs/heads/z/", 0);
	found[0] = '\0';
	ck_assert_int_eq(lock_walk_tree(&disk, &place, "refs", note, NULL), 0);
	has("[:refs/heads/z -13 0]", 1);
	has(" -13 ", 1);
	has("[:refs/tags/t 0 0]", 1);
	has("[", 11);
}

/* A name that cannot be looked at may be a directory with a lock. But at the
 * top no directory is entered. */
TEST(a_name_that_cannot_be_looked_at)
{
	damaged = "refs/heads/a";
	ck_assert_int_eq(walk_locks(), 0);
	hides_types = true;
	ck_assert_int_eq(walk_locks(), -EIO);
	damaged = "HEAD";
	ck_assert_int_eq(walk_locks(), 0);
	has("[", 3);
	damaged = "HEAD.lock";
	ck_assert_int_eq(walk_locks(), 0);
	has("[:HEAD.lock 0 0]", 1);
	has("[", 3);
}

/* No ref has such a long name, and each level costs a descriptor. */
TEST(a_bound_of_the_depth)
{
	const struct ref_place place = { tmp_fd, "" };
	int fd = openat(tmp_fd, "refs", O_RDONLY | O_DIRECTORY), next, i;
	char name[256];

	memset(name, 'd', 255);
	name[255] = '\0';
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(mkdirat(fd, name, 0777), 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		ck_assert_int_ge(next, 0);
		close(fd);
		fd = next;
		next = openat(fd, "x.lock", O_WRONLY | O_CREAT, 0666);
		ck_assert_int_ge(next, 0);
		close(next);
	}
	close(fd);
	ck_assert_int_eq(walk_locks(), 0);
	has("/x.lock ", 3);
	has("[", 6);
	nr_long = 0;
	ck_assert_int_eq(lock_walk_tree(&disk, &place, "refs", count, NULL), 0);
	ck_assert_uint_eq(nr_long, 1);
}

TEST(a_bound_of_the_work, .times = 2)
{
	size_t all = left;

	hides_types = _i == 1;
	ck_assert_int_eq(walk_locks(), 0);
	all -= left;
	left = all;
	ck_assert_int_eq(walk_locks(), 0);
	ck_assert_uint_eq(left, 0);
	left = all - 1;
	ck_assert_int_eq(walk_locks(), -EUSERS);
	/* A worktree costs more, because its descriptor stays open. But no
	 * number of them hides the locks of the common dir. */
	tmp_mkdir("worktrees/w");
	left = all + 1000;
	ck_assert_int_eq(walk_locks(), -EUSERS);
	has("[", 3);
	left = all + 1002;
	ck_assert_int_eq(walk_locks(), 0);
}
