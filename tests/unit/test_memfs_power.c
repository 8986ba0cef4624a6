/*
 * Proves how the model loses data without a sync or after a failed sync. The
 * model also ends in other ways: a crash keeps all writes, the n-th change is
 * the last change, or a single mount goes away. Random scripts on two mounts
 * show that synced data survives a power loss, that links are counted
 * correctly, and that data that survived one power loss survives the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/memfs_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/systree.h"

#define SEEDS 300
static void create(const char *path)
{
	int fd = mr_open(path, O_WRONLY | O_CREAT | O_EXCL);

	ck_assert_int_eq(SYS(mr_sys, write_all, fd, "new", 3), 0);
	SYS(mr_sys, close, fd);
}

/* ---- data ---- */

static void append(void)
{
	int fd = mr_open("/d/x", O_WRONLY | O_APPEND);

	ck_assert_int_eq(SYS(mr_sys, write_all, fd, MR_NEW, strlen(MR_NEW)), 0);
	SYS(mr_sys, close, fd);
}

CASE(.setup = mr_setup, .teardown = mr_teardown, .seconds = 60);

TEST(an_append_leaves_the_beginning_alone)
{
	unsigned seed, found = 0;
	size_t len;
	char *text;

	for (seed = 0; seed < SEEDS; seed++) {
		mr_teardown();
		mr_setup();
		append();
		mr_power_loss(seed);
		text = memfs_read(mr_fs, "/d/x", &len);
		ck_assert_uint_ge(len, strlen(MR_OLD));
		ck_assert_int_eq(memcmp(text, MR_OLD, strlen(MR_OLD)), 0);
		if (len == strlen(MR_OLD))
			found |= 1;
		else if (text[strlen(MR_OLD)] == '\0')
			found |= 2;
		else if (strcmp(text, MR_OLD MR_NEW) != 0)
			found |= 4;
		else
			found |= 8;
		free(text);
	}
	ck_assert_uint_eq(found, 15);
}

TEST(sectors_fare_each_for_itself)
{
	static char page[4096], again[4096];
	unsigned seed, i, mixed = 0;
	bool whole = true;
	char *text;
	int fd;

	memset(page, 'a', sizeof(page));
	memset(again, 'b', sizeof(again));
	for (seed = 0; seed < SEEDS; seed++) {
		memfs_write_bytes(mr_fs, "/d/x", page, sizeof(page));
		fd = mr_open("/d/x", O_RDWR);
		ck_assert_int_eq(SYS(mr_sys, pwrite, fd, again, sizeof(again),
				     0),
		    (int)sizeof(again));
		SYS(mr_sys, close, fd);
		mr_power_loss(seed);
		text = memfs_read(mr_fs, "/d/x", NULL);
		for (i = 0; i < sizeof(page); i++)
			whole = whole && text[i] == text[i - i % 512];
		if (memcmp(text, page, sizeof(page)) != 0 &&
		    memcmp(text, again, sizeof(again)) != 0)
			mixed++;
		free(text);
	}
	ck_assert(whole);
	ck_assert_uint_gt(mixed, 0);
}

TEST(a_failed_sync_is_not_made_good_by_the_next)
{
	char buf[8] = { 0 };
	int fd;

	fd = mr_open("/d/y", O_RDWR | O_CREAT);
	mr_sync("/d");
	SYS(mr_sys, write_all, fd, "abc", 3);
	memfs_fail_call(mr_fs, MEMFS_FSYNC, 0, -EIO);
	ck_assert_int_eq(SYS(mr_sys, fsync, fd), -EIO);
	ck_assert_int_eq(SYS(mr_sys, pread, fd, buf, 8, 0), 3);
	ck_assert_int_eq(SYS(mr_sys, fsync, fd), 0);
	SYS(mr_sys, drop_cache, fd);
	ck_assert_int_eq(SYS(mr_sys, pread, fd, buf, 8, 0), 3);
	ck_assert_int_eq(memcmp(buf, "\0\0\0", 3), 0);
	mr_power_loss(1);
	ck_assert(!memfs_holds(mr_fs, "/d/y", "abc"));
}

TEST(every_descriptor_is_told_of_a_failed_sync_once)
{
	int one = mr_open("/d/x", O_RDWR), two = mr_open("/d/x", O_RDWR);

	SYS(mr_sys, write_all, one, "abc", 3);
	memfs_fail_call(mr_fs, MEMFS_FDATASYNC, 0, -EIO);
	ck_assert_int_eq(SYS(mr_sys, fdatasync, one), -EIO);
	ck_assert_int_eq(SYS(mr_sys, fsync, two), -EIO);
	ck_assert_int_eq(SYS(mr_sys, fsync, two), 0);
	mr_sync("/d/x");
}

TEST(the_time_goes_with_the_data)
{
	struct memfs_choice choice = memfs_choose(0);
	struct sys_stat old, new, st;

	SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &old);
	append();
	SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &new);
	ck_assert_int_gt(new.mtime_ns, old.mtime_ns);
	choice.data = MEMFS_DATA_NONE;
	memfs_power_loss(mr_fs, &choice);
	SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &st);
	ck_assert_int_eq(st.mtime_ns, old.mtime_ns);
	append();
	SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &new);
	choice.data = MEMFS_DATA_ALL;
	memfs_power_loss(mr_fs, &choice);
	SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &st);
	ck_assert_int_eq(st.mtime_ns, new.mtime_ns);
}

/* ---- kills, cuts, mounts ---- */

TEST(a_file_that_comes_back_shares_no_inode_number)
{
	struct memfs_choice choice = memfs_choose(0);
	struct sys_stat before, x, y;

	memfs_mkdirs(mr_fs, "/e");
	SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &before);
	SYS(mr_sys, unlinkat, AT_FDCWD, "/d/x");
	create("/e/y");
	SYS(mr_sys, lstatat, AT_FDCWD, "/e/y", &y);
	ck_assert_uint_eq(before.ino, y.ino);
	mr_sync("/e/y");
	mr_sync("/e");
	choice.keep[0] = 0;
	memfs_power_loss(mr_fs, &choice);
	ck_assert_int_eq(SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &x), 0);
	ck_assert_int_eq(SYS(mr_sys, lstatat, AT_FDCWD, "/e/y", &y), 0);
	ck_assert_uint_ne(x.ino, y.ino);
}

TEST(a_crash_keeps_what_was_written)
{
	const struct sys *other = memfs_other(mr_fs);
	int fd, theirs;
	struct sys_stat st;
	char *before, *after;

	create("/d/x.lock");
	ck_assert_int_eq(
	    SYS(mr_sys, renameat, AT_FDCWD, "/d/x.lock", AT_FDCWD, "/d/x"), 0);
	fd = mr_open("/d", O_RDONLY);
	ck_assert_int_eq(SYS(mr_sys, flock_try, fd), 0);
	theirs = SYS(other, openat, AT_FDCWD, "/d", O_RDONLY, 0);
	ck_assert_int_eq(SYS(other, flock_try, theirs), -EAGAIN);
	before = systree(other, "/");
	memfs_crash(mr_fs);
	after = systree(other, "/");
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	ck_assert_int_eq(SYS(mr_sys, fstat, fd, &st), -EBADF);
	ck_assert_int_eq(SYS(other, flock_try, theirs), 0);
}

TEST(the_nth_change_does_not_happen)
{
	const char *boot = memfs_boot_id(mr_fs);
	char was[40];
	int fd = mr_open("/d/x", O_RDWR);
	struct sys_stat st;

	snprintf(was, sizeof(was), "%s", boot);
	memfs_power_loss_at(mr_fs, 1);
	ck_assert_int_eq(SYS(mr_sys, mkdirat, AT_FDCWD, "/d/1", 0777), 0);
	ck_assert_int_eq(SYS(mr_sys, mkdirat, AT_FDCWD, "/d/1", 0777), -EEXIST);
	ck_assert_int_eq(SYS(mr_sys, mkdirat, AT_FDCWD, "/d/2", 0777), -EIO);
	ck_assert_int_eq(SYS(mr_sys, lstatat, AT_FDCWD, "/d/1", &st), -EIO);
	ck_assert_int_eq(SYS(mr_sys, write_all, fd, "x", 1), -EIO);
	ck_assert_int_eq(SYS(memfs_other(mr_fs), unlinkat, AT_FDCWD, "/d/x"),
	    -EIO);
	ck_assert(memfs_was_hit(mr_fs));
	ck_assert_str_eq(memfs_hit(mr_fs), "mkdirat /d/2");
	ck_assert(!memfs_exists(mr_fs, "/d/2"));
	ck_assert(memfs_holds(mr_fs, "/d/x", MR_OLD));
	mr_power_loss(0);
	ck_assert_int_eq(SYS(mr_sys, mkdirat, AT_FDCWD, "/d/2", 0777), 0);
	ck_assert_str_ne(memfs_boot_id(mr_fs), was);
	memfs_crash_at(mr_fs, 0);
	ck_assert_int_eq(SYS(mr_sys, mkdirat, AT_FDCWD, "/d/3", 0777), -EIO);
	ck_assert_int_eq(
	    SYS(memfs_other(mr_fs), lstatat, AT_FDCWD, "/d/2", &st), 0);
}

TEST(one_mount_goes_and_comes_back)
{
	struct memfs_choice choice = memfs_choose(0);
	uint64_t before, after;
	int fd, here;

	memfs_mount(mr_fs, "/m");
	memfs_write(mr_fs, "/m/x", MR_OLD);
	fd = mr_open("/m/x", O_RDWR);
	SYS(mr_sys, mount_id, fd, &before);
	here = mr_open("/d/x", O_RDWR | O_APPEND);
	create("/d/y");
	create("/m/y");
	choice.keep[1] = 0;
	memfs_remount(mr_fs, 1, &choice);
	ck_assert_int_eq(SYS(mr_sys, write_all, fd, "x", 1), -EIO);
	ck_assert_int_eq(SYS(mr_sys, close, fd), 0);
	ck_assert_int_eq(SYS(mr_sys, write_all, here, "x", 1), 0);
	ck_assert(memfs_exists(mr_fs, "/d/y"));
	ck_assert(!memfs_exists(mr_fs, "/m/y"));
	fd = mr_open("/m/x", O_RDWR);
	SYS(mr_sys, mount_id, fd, &after);
	ck_assert_uint_ne(before, after);
}

TEST(a_dead_mount_answers_its_error)
{
	struct sys_stat st;
	int fd;

	memfs_mount(mr_fs, "/m");
	memfs_write(mr_fs, "/m/x", MR_OLD);
	fd = mr_open("/m/x", O_RDWR);
	memfs_set_dead(mr_fs, 1, -EROFS);
	ck_assert_int_eq(SYS(mr_sys, write_all, fd, "x", 1), -EROFS);
	ck_assert_int_eq(SYS(mr_sys, openat, AT_FDCWD, "/m/x", O_RDONLY, 0),
	    -EROFS);
	ck_assert_int_eq(SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &st), 0);
	memfs_set_dead(mr_fs, 1, 0);
	ck_assert_int_eq(SYS(mr_sys, write_all, fd, "x", 1), 0);
}

/* ---- random scripts ---- */

#define SCRIPTS 300

static uint64_t rng;

static unsigned pick(unsigned n)
{
	rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)((rng >> 33) % n);
}

static const char *pick_path(void)
{
	static const char *const paths[] = { "/a", "/b", "/a/a", "/a/b", "/b/a",
		"/b/b", "/a/a/a", "/a/b/b", "/b/a/c", "/b/b/c", "/m/a", "/m/b",
		"/m/a/a", "/m/a/b", "/m/b/a" };

	return paths[pick(sizeof(paths) / sizeof(paths[0]))];
}

static void random_sync(int fd)
{
	unsigned way = pick(8);

	if (way == 0)
		SYS(mr_sys, syncfs, fd);
	else if (way < 3)
		SYS(mr_sys, fdatasync, fd);
	else
		SYS(mr_sys, fsync, fd);
}

static void random_step(void)
{
	const char *path = pick_path(), *to = pick_path();
	char text[600];
	unsigned way = pick(12);
	int fd;

	memset(text, 'a' + (int)pick(26), sizeof(text));
	if (way < 3) {
		SYS(mr_sys, renameat, AT_FDCWD, path, AT_FDCWD, to);
	} else if (way == 3) {
		SYS(mr_sys, linkat, AT_FDCWD, path, AT_FDCWD, to);
	} else if (way == 4) {
		SYS(mr_sys, mkdirat, AT_FDCWD, path, 0777);
	} else if (way == 5) {
		SYS(mr_sys, unlinkat, AT_FDCWD, path);
	} else if (way == 6) {
		SYS(mr_sys, rmdirat, AT_FDCWD, path);
	} else if (way == 7) {
		SYS(mr_sys, chmod_trusted, path, 0700 + pick(8));
	} else if (way < 10) {
		fd =
		    SYS(mr_sys, openat, AT_FDCWD, path, O_RDWR | O_CREAT, 0666);
		SYS(mr_sys, pwrite, fd, text, pick(sizeof(text)), pick(5000));
		if (pick(3) == 0)
			SYS(mr_sys, ftruncate, fd, pick(5000));
		SYS(mr_sys, close, fd);
	} else {
		fd = SYS(mr_sys, openat, AT_FDCWD, path, O_RDONLY, 0);
		random_sync(fd);
		SYS(mr_sys, close, fd);
	}
}

/* Every line "... links N as P" must belong to N lines with this P. */
static void links_are_right(const char *tree)
{
	const char *line, *other, *as, *end;
	unsigned links, nr;
	size_t len;
	bool right = true;

	for (line = strstr(tree, " links "); line != NULL;
	    line = strstr(line + 1, " links ")) {
		links = (unsigned)strtoul(line + 7, NULL, 10);
		as = strstr(line, " as ");
		end = strstr(as, " sum ");
		len = (size_t)(end - as) + 5;
		for (nr = 0, other = strstr(tree, " as "); other != NULL;
		    other = strstr(other + 1, " as "))
			nr += strncmp(other, as, len) == 0;
		right = right && nr == links;
	}
	ck_assert_msg(right, "%.4000s", tree);
}

static void sync_all(void)
{
	int fd = mr_open("/", O_RDONLY);

	SYS(mr_sys, syncfs, fd);
	SYS(mr_sys, close, fd);
	fd = mr_open("/m", O_RDONLY);
	SYS(mr_sys, syncfs, fd);
	SYS(mr_sys, close, fd);
}

static void random_script(unsigned seed)
{
	char *before, *after;
	unsigned step;

	rng = seed * 7919U + 1;
	memfs_mount(mr_fs, "/m");
	memfs_set_mode(mr_fs, seed & 1 ? MEMFS_ORDERED : MEMFS_STRICT);
	for (step = 0; step < 60; step++)
		random_step();
	if (seed % 3 == 0)
		sync_all();
	before = systree(mr_sys, "/");
	links_are_right(before);
	mr_power_loss(seed);
	after = systree(mr_sys, "/");
	links_are_right(after);
	if (seed % 3 == 0)
		ck_assert_str_eq(before, after);
	free(before);
	mr_power_loss(seed + 1);
	before = systree(mr_sys, "/");
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	for (step = 0; step < 60; step++)
		random_step();
}

TEST(random_scripts_end_well, .times = 10)
{
	unsigned i;

	for (i = 0; i < SCRIPTS; i++) {
		random_script((unsigned)_i * SCRIPTS + i);
		mr_teardown();
		mr_setup();
	}
}
