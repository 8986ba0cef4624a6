/*
 * Proves properties of the fake file system that a comparison with the kernel
 * can't show: changes of file times (compared with the kernel, by hand), inode
 * numbers, mounts, room, faults, other processes, the clock. Power losses:
 * test_memfs_cut.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/sys.h"
#include "tests/lib/memfs.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

struct rules_side {
	const struct sys *sys;
	int root;
};

static struct memfs *fs;
static struct rules_side kernel, model;

static void setup(void)
{
	umask(0);
	tmp_setup();
	kernel.sys = &sys_kernel;
	kernel.root = tmp_fd;
	fs = memfs_new();
	memfs_mkdirs(fs, "/w");
	model.sys = memfs_sys(fs);
	model.root =
	    SYS(model.sys, openat, AT_FDCWD, "/w", O_RDONLY | O_DIRECTORY, 0);
}

static void teardown(void)
{
	memfs_free(fs);
	tmp_teardown();
}

/* ---- changes of the time of last change ---- */

static const char *const watched[] = { "t/f", "t", "t/sub" };

/* Which of the three files have a new mtime since BEFORE, as bits. */
static unsigned moved(const struct rules_side *s, const int64_t before[3])
{
	struct sys_stat st;
	unsigned i, which = 0;

	for (i = 0; i < 3; i++) {
		if (SYS(s->sys, lstatat, s->root, watched[i], &st) == 0 &&
		    st.mtime_ns != before[i])
			which |= 1U << i;
	}
	return which;
}

static void open_close(const struct rules_side *s, const char *path, int flags)
{
	int fd = SYS(s->sys, openat, s->root, path, O_WRONLY | flags, 0666);

	ck_assert_int_ge(fd, 0);
	SYS(s->sys, close, fd);
}

static void act_on_names(const struct rules_side *s, int i)
{
	const struct sys *sys = s->sys;

	if (i == 0)
		SYS(sys, linkat, s->root, "t/f", s->root, "t/g");
	else if (i == 1)
		SYS(sys, renameat, s->root, "t/f", s->root, "t/sub/f");
	else if (i == 2)
		SYS(sys, unlinkat, s->root, "t/f");
	else if (i == 3)
		SYS(sys, mkdirat, s->root, "t/sub/x", 0755);
	else if (i == 4)
		SYS(sys, rmdirat, s->root, "t/sub");
	else if (i == 5)
		open_close(s, "t/f", O_TRUNC);
	else if (i == 6)
		open_close(s, "t/f", O_CREAT);
	else if (i == 7)
		open_close(s, "t/n", O_CREAT);
}

static void act_on_fd(const struct rules_side *s, int i)
{
	const struct sys *sys = s->sys;
	int fd;

	if (i < 0)
		return;
	fd = SYS(sys, openat, s->root, "t/f", O_RDWR, 0);
	ck_assert_int_ge(fd, 0);
	if (i == 0)
		SYS(sys, write_all, fd, "x", 1);
	else if (i == 1)
		SYS(sys, pwrite, fd, "x", 1, 100);
	else if (i == 2)
		SYS(sys, pwrite, fd, "", 0, 0);
	else if (i == 3)
		SYS(sys, ftruncate, fd, 3);
	else if (i == 4)
		SYS(sys, fchmod, fd, 0640);
	else if (i == 5)
		SYS(sys, futimens_now, fd);
	SYS(sys, close, fd);
}

static void make_watched(const struct rules_side *s)
{
	int fd;

	SYS(s->sys, mkdirat, s->root, "t", 0777);
	SYS(s->sys, mkdirat, s->root, "t/sub", 0777);
	fd = SYS(s->sys, openat, s->root, "t/f", O_WRONLY | O_CREAT, 0666);
	SYS(s->sys, write_all, fd, "abc", 3);
	SYS(s->sys, close, fd);
}

CASE(.setup = setup, .teardown = teardown);

TEST(times_move_alike, .times = 14)
{
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	int64_t k[3], m[3];
	struct sys_stat st;
	unsigned i;

	make_watched(&kernel);
	make_watched(&model);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(utimensat(kernel.root, watched[i], old, 0), 0);
		k[i] = 1000 * 1000000000LL;
		SYS(model.sys, lstatat, model.root, watched[i], &st);
		m[i] = st.mtime_ns;
	}
	act_on_names(&kernel, _i);
	act_on_names(&model, _i);
	act_on_fd(&kernel, _i - 8);
	act_on_fd(&model, _i - 8);
	ck_assert_uint_eq(moved(&kernel, k), moved(&model, m));
}

TEST(an_inode_number_comes_back_at_once)
{
	struct sys_stat a, b;

	memfs_write(fs, "/w/one", "1");
	SYS(model.sys, lstatat, AT_FDCWD, "/w/one", &a);
	SYS(model.sys, unlinkat, AT_FDCWD, "/w/one");
	memfs_write(fs, "/w/two", "2");
	SYS(model.sys, lstatat, AT_FDCWD, "/w/two", &b);
	ck_assert_uint_eq(a.ino, b.ino);
}

TEST(an_open_file_keeps_its_inode_number)
{
	struct sys_stat a, b;
	int fd;

	memfs_write(fs, "/w/one", "1");
	fd = SYS(model.sys, openat, AT_FDCWD, "/w/one", O_RDONLY, 0);
	SYS(model.sys, unlinkat, AT_FDCWD, "/w/one");
	memfs_write(fs, "/w/two", "2");
	SYS(model.sys, fstat, fd, &a);
	SYS(model.sys, lstatat, AT_FDCWD, "/w/two", &b);
	ck_assert_uint_ne(a.ino, b.ino);
	ck_assert_uint_eq(a.nlink, 0);
}

TEST(mounts_are_apart)
{
	const struct sys *sys = model.sys;
	struct sys_stat a, b;
	uint64_t ida, idb;
	char path[64];
	int fda, fdb;

	ck_assert_uint_eq(memfs_mount(fs, "/other/disk"), 1);
	memfs_write(fs, "/other/disk/f", "x");
	fda = SYS(sys, openat, AT_FDCWD, "/w", O_RDONLY, 0);
	fdb = SYS(sys, openat, AT_FDCWD, "/other/disk", O_RDONLY, 0);
	SYS(sys, fstat, fda, &a);
	SYS(sys, fstat, fdb, &b);
	ck_assert_uint_ne(a.dev, b.dev);
	SYS(sys, mount_id, fda, &ida);
	SYS(sys, mount_id, fdb, &idb);
	ck_assert_uint_ne(ida, idb);
	ck_assert_int_eq(SYS(sys, fd_path, fdb, path, sizeof(path)), 0);
	ck_assert_str_eq(path, "/other/disk");
	ck_assert_int_eq(SYS(sys, linkat, fdb, "f", fda, "f"), -EXDEV);
	ck_assert_int_eq(SYS(sys, renameat, fdb, "f", fda, "f"), -EXDEV);
	ck_assert_int_eq(SYS(sys, rmdirat, AT_FDCWD, "/other/disk"), -EBUSY);
	SYS(sys, unlinkat, fdb, "f");
	ck_assert_int_eq(SYS(sys, rmdirat, AT_FDCWD, "/other/disk"), -EBUSY);
	ck_assert_int_eq(SYS(sys, lstatat, fdb, "..", &b), -EINVAL);
}

TEST(room_ends_in_the_middle_of_a_write)
{
	static const char page[10000] = "x";
	const struct sys *sys = model.sys;
	struct sys_stat st;
	int fd;

	memfs_set_room(fs, 0, 4096, 1);
	fd = SYS(sys, openat, AT_FDCWD, "/w/f", O_RDWR | O_CREAT, 0666);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(SYS(sys, openat, AT_FDCWD, "/w/g", O_RDWR | O_CREAT,
			     0666),
	    -ENOSPC);
	ck_assert_int_eq(SYS(sys, write_all, fd, page, 5000), -ENOSPC);
	SYS(sys, fstat, fd, &st);
	ck_assert_uint_eq(st.size, 4096);
	ck_assert_int_eq(SYS(sys, pwrite, fd, page, 10, 4090), 6);
	ck_assert_int_eq(SYS(sys, pwrite, fd, page, 10, 4096), -ENOSPC);
	/* An unlinked file uses room until the last close. */
	SYS(sys, unlinkat, AT_FDCWD, "/w/f");
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, "/w/d", 0777), -ENOSPC);
	SYS(sys, close, fd);
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, "/w/d", 0777), 0);
}

TEST(faults_come_when_they_should)
{
	const struct sys *sys = model.sys;
	struct sys_stat st;
	int fd;

	memfs_fail(fs, 1, -EIO);
	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, "/w", &st), 0);
	ck_assert(!memfs_was_hit(fs));
	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, "/w", &st), -EIO);
	ck_assert(memfs_was_hit(fs));
	ck_assert_str_eq(memfs_hit(fs), "lstatat /w");
	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, "/w", &st), 0);

	memfs_fail_call(fs, MEMFS_WRITE_ALL, 0, -EDQUOT);
	fd = SYS(sys, openat, AT_FDCWD, "/w/f", O_RDWR | O_CREAT, 0666);
	ck_assert_int_eq(SYS(sys, write_all, fd, "abcdef", 6), -EDQUOT);
	ck_assert(memfs_holds(fs, "/w/f", "abc"));

	memfs_die(fs, 0, -EROFS);
	ck_assert_int_eq(SYS(sys, fsync, fd), -EROFS);
	ck_assert_int_eq(SYS(sys, unlinkat, AT_FDCWD, "/w/f"), -EROFS);
	ck_assert_int_eq(SYS(sys, close, fd), 0);
	memfs_fail_none(fs);
	ck_assert_int_eq(SYS(sys, unlinkat, AT_FDCWD, "/w/f"), 0);

	memfs_set_max_fds(fs, 2);
	fd = SYS(sys, openat, AT_FDCWD, "/w", O_RDONLY, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(SYS(sys, openat, AT_FDCWD, "/w", O_RDONLY, 0),
	    -EMFILE);
	SYS(sys, close, fd);
	ck_assert_uint_eq(memfs_open_fds(fs), 1);
}

TEST(misuse_is_counted)
{
	const struct sys *sys = model.sys;
	struct sys_stat st;
	int fd;

	fd = SYS(sys, openat, AT_FDCWD, "/w/f", O_RDWR | O_CREAT, 0666);
	memfs_fail_call(fs, MEMFS_FSYNC, 0, -EIO);
	ck_assert_int_eq(SYS(sys, fsync, fd), -EIO);
	ck_assert_uint_eq(memfs_bad_syncs(fs), 0);
	ck_assert_int_eq(SYS(sys, fsync, fd), 0);
	ck_assert_uint_eq(memfs_bad_syncs(fs), 1);
	SYS(sys, close, fd);
	ck_assert_uint_eq(memfs_bad_fds(fs), 0);
	ck_assert_int_eq(SYS(sys, fstat, fd, &st), -EBADF);
	ck_assert_uint_eq(memfs_bad_fds(fs), 1);
	/* After a crash, the dead process may still close files. */
	fd = SYS(sys, openat, AT_FDCWD, "/w/f", O_RDWR, 0);
	memfs_crash(fs);
	ck_assert_int_eq(SYS(sys, close, fd), -EBADF);
	ck_assert_uint_eq(memfs_bad_fds(fs), 1);
}

static void move_it(struct memfs *machine, void *arg)
{
	const struct sys *sys = memfs_other(machine);

	(*(int *)arg)++;
	SYS(sys, renameat, AT_FDCWD, "/w/f", AT_FDCWD, "/w/g");
}

TEST(another_process_comes_between)
{
	const struct sys *sys = model.sys;
	struct sys_stat st;
	int nr = 0;

	memfs_write(fs, "/w/f", "x");
	memfs_between(fs, 1, move_it, &nr);
	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, "/w/f", &st), 0);
	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, "/w/f", &st), -ENOENT);
	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, "/w/g", &st), 0);
	ck_assert_int_eq(nr, 1);
}

TEST(the_clock_is_virtual)
{
	const struct sys *sys = model.sys;
	int64_t wall = SYS(sys, now_wall), mono = SYS(sys, now_mono);
	struct sys_stat st;

	SYS(sys, sleep_ns, 3600 * 1000000000LL);
	ck_assert_int_eq(SYS(sys, now_wall) - wall, 3600 * 1000000000LL);
	memfs_shift_wall(fs, -7200 * 1000000000LL);
	ck_assert_int_eq(SYS(sys, now_wall) - wall, -3600 * 1000000000LL);
	ck_assert_int_eq(SYS(sys, now_mono) - mono, 3600 * 1000000000LL);
	memfs_set_tick(fs, 4000000);
	memfs_write(fs, "/w/f", "x");
	SYS(sys, lstatat, AT_FDCWD, "/w/f", &st);
	ck_assert_int_eq(st.mtime_ns % 4000000, 0);
	ck_assert_int_gt(SYS(sys, now_wall) - st.mtime_ns, 0);
	ck_assert_int_lt(SYS(sys, now_wall) - st.mtime_ns, 4100000);
}

/* Every thread has its own directory, which is empty at the end. */
static void *busy(void *arg)
{
	const struct sys *sys = model.sys;
	struct sys_stat st;
	char path[64], to[64];
	int i, fd, bad = 0;

	for (i = 0; i < 500; i++) {
		snprintf(path, sizeof(path), "/w/%s/%d", (char *)arg, i % 7);
		snprintf(to, sizeof(to), "/w/%s/to", (char *)arg);
		fd = SYS(sys, openat, AT_FDCWD, path, O_WRONLY | O_CREAT, 0666);
		bad += SYS(sys, write_all, fd, path, strlen(path)) != 0;
		bad += SYS(sys, fsync, fd) != 0;
		bad += SYS(sys, close, fd) != 0;
		bad += SYS(sys, renameat, AT_FDCWD, path, AT_FDCWD, to) != 0;
		bad += SYS(sys, lstatat, AT_FDCWD, to, &st) != 0;
		bad += SYS(sys, unlinkat, AT_FDCWD, to) != 0;
	}
	return bad == 0 ? NULL : arg;
}

TEST(threads_may_share_it)
{
	static char names[4][2] = { "a", "b", "c", "d" };
	pthread_t thread[4];
	void *bad;
	int i;

	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(
		    SYS(model.sys, mkdirat, model.root, names[i], 0777), 0);
		ck_assert_int_eq(
		    pthread_create(&thread[i], NULL, busy, names[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &bad);
		ck_assert_ptr_null(bad);
		ck_assert_int_eq(SYS(model.sys, rmdirat, model.root, names[i]),
		    0);
	}
	ck_assert_uint_eq(memfs_nr_changes(fs), 4 + 4 + 4 * 500 * 5);
}
