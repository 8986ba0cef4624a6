/*
 * What becomes of data that was not synced, or whose sync failed. How the fake
 * machine comes to an end: a kill keeps what was written, the n-th change is
 * the last one, a mount goes alone. And for random scripts on
 * two mounts: what was synced is all there after a cut, links are counted
 * right, and what one cut has left the next one leaves.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/sys.h"
#include "tests/lib/memfs.h"
#include "tests/lib/suite.h"
#include "tests/lib/systree.h"

#define SEEDS 300
#define OLD   "the old value, forty bytes long or so...\n"
#define NEW   "and the new one, which is not the same!!\n"

static struct memfs *fs;
static const struct sys *sys;

static void setup(void)
{
	fs = memfs_new();
	sys = memfs_sys(fs);
	memfs_write(fs, "/d/x", OLD);
}

static void teardown(void)
{
	memfs_free(fs);
}

static void cut(uint64_t seed)
{
	struct memfs_choice choice = memfs_choose(seed);

	memfs_cut(fs, &choice);
}

static int open_it(const char *path, int flags)
{
	int fd = SYS(sys, openat, AT_FDCWD, path, flags, 0666);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void create(const char *path)
{
	int fd = open_it(path, O_WRONLY | O_CREAT | O_EXCL);

	ck_assert_int_eq(SYS(sys, write_all, fd, "new", 3), 0);
	SYS(sys, close, fd);
}

static void sync_it(const char *path)
{
	int fd = open_it(path, O_RDONLY);

	ck_assert_int_eq(SYS(sys, fsync, fd), 0);
	SYS(sys, close, fd);
}

/* ---- data ---- */

static void append(void)
{
	int fd = open_it("/d/x", O_WRONLY | O_APPEND);

	ck_assert_int_eq(SYS(sys, write_all, fd, NEW, strlen(NEW)), 0);
	SYS(sys, close, fd);
}

START_TEST(an_append_leaves_the_beginning_alone)
{
	unsigned seed, found = 0;
	size_t len;
	char *text;

	for (seed = 0; seed < SEEDS; seed++) {
		teardown();
		setup();
		append();
		cut(seed);
		text = memfs_read(fs, "/d/x", &len);
		ck_assert_uint_ge(len, strlen(OLD));
		ck_assert_int_eq(memcmp(text, OLD, strlen(OLD)), 0);
		if (len == strlen(OLD))
			found |= 1;
		else if (text[strlen(OLD)] == '\0')
			found |= 2;
		else if (strcmp(text, OLD NEW) != 0)
			found |= 4;
		else
			found |= 8;
		free(text);
	}
	ck_assert_uint_eq(found, 15);
}
END_TEST

START_TEST(sectors_fare_each_for_itself)
{
	static char page[4096], again[4096];
	unsigned seed, i, mixed = 0;
	bool whole = true;
	char *text;
	int fd;

	memset(page, 'a', sizeof(page));
	memset(again, 'b', sizeof(again));
	for (seed = 0; seed < SEEDS; seed++) {
		memfs_write_bytes(fs, "/d/x", page, sizeof(page));
		fd = open_it("/d/x", O_RDWR);
		ck_assert_int_eq(SYS(sys, pwrite, fd, again, sizeof(again), 0),
		    (int)sizeof(again));
		SYS(sys, close, fd);
		cut(seed);
		text = memfs_read(fs, "/d/x", NULL);
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
END_TEST

START_TEST(a_failed_sync_is_not_made_good_by_the_next)
{
	char buf[8] = { 0 };
	int fd;

	fd = open_it("/d/y", O_RDWR | O_CREAT);
	sync_it("/d");
	SYS(sys, write_all, fd, "abc", 3);
	memfs_fail_call(fs, MEMFS_FSYNC, 0, -EIO);
	ck_assert_int_eq(SYS(sys, fsync, fd), -EIO);
	ck_assert_int_eq(SYS(sys, pread, fd, buf, 8, 0), 3);
	ck_assert_int_eq(SYS(sys, fsync, fd), 0);
	SYS(sys, drop_cache, fd);
	ck_assert_int_eq(SYS(sys, pread, fd, buf, 8, 0), 3);
	ck_assert_int_eq(memcmp(buf, "\0\0\0", 3), 0);
	cut(1);
	ck_assert(!memfs_holds(fs, "/d/y", "abc"));
}
END_TEST

START_TEST(every_descriptor_is_told_of_a_failed_sync_once)
{
	int one = open_it("/d/x", O_RDWR), two = open_it("/d/x", O_RDWR);

	SYS(sys, write_all, one, "abc", 3);
	memfs_fail_call(fs, MEMFS_FDATASYNC, 0, -EIO);
	ck_assert_int_eq(SYS(sys, fdatasync, one), -EIO);
	ck_assert_int_eq(SYS(sys, fsync, two), -EIO);
	ck_assert_int_eq(SYS(sys, fsync, two), 0);
	sync_it("/d/x");
}
END_TEST

START_TEST(the_time_goes_with_the_data)
{
	struct memfs_choice choice = memfs_choose(0);
	struct sys_stat old, new, st;

	SYS(sys, statat, AT_FDCWD, "/d/x", &old);
	append();
	SYS(sys, statat, AT_FDCWD, "/d/x", &new);
	ck_assert_int_gt(new.mtime_ns, old.mtime_ns);
	choice.data = MEMFS_DATA_NONE;
	memfs_cut(fs, &choice);
	SYS(sys, statat, AT_FDCWD, "/d/x", &st);
	ck_assert_int_eq(st.mtime_ns, old.mtime_ns);
	append();
	SYS(sys, statat, AT_FDCWD, "/d/x", &new);
	choice.data = MEMFS_DATA_ALL;
	memfs_cut(fs, &choice);
	SYS(sys, statat, AT_FDCWD, "/d/x", &st);
	ck_assert_int_eq(st.mtime_ns, new.mtime_ns);
}
END_TEST

/* ---- kills, cuts, mounts ---- */

START_TEST(a_file_that_comes_back_shares_no_inode_number)
{
	struct memfs_choice choice = memfs_choose(0);
	struct sys_stat before, x, y;

	memfs_mkdirs(fs, "/e");
	SYS(sys, statat, AT_FDCWD, "/d/x", &before);
	SYS(sys, unlinkat, AT_FDCWD, "/d/x");
	create("/e/y");
	SYS(sys, statat, AT_FDCWD, "/e/y", &y);
	ck_assert_uint_eq(before.ino, y.ino);
	sync_it("/e/y");
	sync_it("/e");
	choice.keep[0] = 0;
	memfs_cut(fs, &choice);
	ck_assert_int_eq(SYS(sys, statat, AT_FDCWD, "/d/x", &x), 0);
	ck_assert_int_eq(SYS(sys, statat, AT_FDCWD, "/e/y", &y), 0);
	ck_assert_uint_ne(x.ino, y.ino);
}
END_TEST

START_TEST(a_kill_keeps_what_was_written)
{
	const struct sys *other = memfs_other(fs);
	int fd, theirs;
	struct sys_stat st;
	char *before, *after;

	create("/d/x.lock");
	ck_assert_int_eq(
	    SYS(sys, renameat, AT_FDCWD, "/d/x.lock", AT_FDCWD, "/d/x"), 0);
	fd = open_it("/d", O_RDONLY);
	ck_assert_int_eq(SYS(sys, flock_try, fd), 0);
	theirs = SYS(other, openat, AT_FDCWD, "/d", O_RDONLY, 0);
	ck_assert_int_eq(SYS(other, flock_try, theirs), -EAGAIN);
	before = systree(other, "/");
	memfs_kill(fs);
	after = systree(other, "/");
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	ck_assert_int_eq(SYS(sys, fstat, fd, &st), -EBADF);
	ck_assert_int_eq(SYS(other, flock_try, theirs), 0);
}
END_TEST

START_TEST(the_nth_change_does_not_happen)
{
	const char *boot = memfs_boot_id(fs);
	char was[40];
	int fd = open_it("/d/x", O_RDWR);
	struct sys_stat st;

	snprintf(was, sizeof(was), "%s", boot);
	memfs_cut_at(fs, 1);
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, "/d/1", 0777), 0);
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, "/d/1", 0777), -EEXIST);
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, "/d/2", 0777), -EIO);
	ck_assert_int_eq(SYS(sys, statat, AT_FDCWD, "/d/1", &st), -EIO);
	ck_assert_int_eq(SYS(sys, write_all, fd, "x", 1), -EIO);
	ck_assert_int_eq(SYS(memfs_other(fs), unlinkat, AT_FDCWD, "/d/x"),
	    -EIO);
	ck_assert(memfs_was_hit(fs));
	ck_assert_str_eq(memfs_hit(fs), "mkdirat /d/2");
	ck_assert(!memfs_exists(fs, "/d/2"));
	ck_assert(memfs_holds(fs, "/d/x", OLD));
	cut(0);
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, "/d/2", 0777), 0);
	ck_assert_str_ne(memfs_boot_id(fs), was);
	memfs_kill_at(fs, 0);
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, "/d/3", 0777), -EIO);
	ck_assert_int_eq(SYS(memfs_other(fs), statat, AT_FDCWD, "/d/2", &st),
	    0);
}
END_TEST

START_TEST(one_mount_goes_and_comes_back)
{
	struct memfs_choice choice = memfs_choose(0);
	uint64_t before, after;
	int fd, here;

	memfs_mount(fs, "/m");
	memfs_write(fs, "/m/x", OLD);
	fd = open_it("/m/x", O_RDWR);
	SYS(sys, mount_id, fd, &before);
	here = open_it("/d/x", O_RDWR | O_APPEND);
	create("/d/y");
	create("/m/y");
	choice.keep[1] = 0;
	memfs_remount(fs, 1, &choice);
	ck_assert_int_eq(SYS(sys, write_all, fd, "x", 1), -EIO);
	ck_assert_int_eq(SYS(sys, close, fd), 0);
	ck_assert_int_eq(SYS(sys, write_all, here, "x", 1), 0);
	ck_assert(memfs_exists(fs, "/d/y"));
	ck_assert(!memfs_exists(fs, "/m/y"));
	fd = open_it("/m/x", O_RDWR);
	SYS(sys, mount_id, fd, &after);
	ck_assert_uint_ne(before, after);
}
END_TEST

START_TEST(a_dead_mount_answers_its_error)
{
	struct sys_stat st;
	int fd;

	memfs_mount(fs, "/m");
	memfs_write(fs, "/m/x", OLD);
	fd = open_it("/m/x", O_RDWR);
	memfs_set_dead(fs, 1, -EROFS);
	ck_assert_int_eq(SYS(sys, write_all, fd, "x", 1), -EROFS);
	ck_assert_int_eq(SYS(sys, openat, AT_FDCWD, "/m/x", O_RDONLY, 0),
	    -EROFS);
	ck_assert_int_eq(SYS(sys, statat, AT_FDCWD, "/d/x", &st), 0);
	memfs_set_dead(fs, 1, 0);
	ck_assert_int_eq(SYS(sys, write_all, fd, "x", 1), 0);
}
END_TEST

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
		SYS(sys, syncfs, fd);
	else if (way < 3)
		SYS(sys, fdatasync, fd);
	else
		SYS(sys, fsync, fd);
}

static void random_step(void)
{
	const char *path = pick_path(), *to = pick_path();
	char text[600];
	unsigned way = pick(12);
	int fd;

	memset(text, 'a' + (int)pick(26), sizeof(text));
	if (way < 3) {
		SYS(sys, renameat, AT_FDCWD, path, AT_FDCWD, to);
	} else if (way == 3) {
		SYS(sys, linkat, AT_FDCWD, path, AT_FDCWD, to);
	} else if (way == 4) {
		SYS(sys, mkdirat, AT_FDCWD, path, 0777);
	} else if (way == 5) {
		SYS(sys, unlinkat, AT_FDCWD, path);
	} else if (way == 6) {
		SYS(sys, rmdirat, AT_FDCWD, path);
	} else if (way == 7) {
		SYS(sys, fchmodat, AT_FDCWD, path, 0700 + pick(8));
	} else if (way < 10) {
		fd = SYS(sys, openat, AT_FDCWD, path, O_RDWR | O_CREAT, 0666);
		SYS(sys, pwrite, fd, text, pick(sizeof(text)), pick(5000));
		if (pick(3) == 0)
			SYS(sys, ftruncate, fd, pick(5000));
		SYS(sys, close, fd);
	} else {
		fd = SYS(sys, openat, AT_FDCWD, path, O_RDONLY, 0);
		random_sync(fd);
		SYS(sys, close, fd);
	}
}

/* Every line "... links N as P" must be one of N with that P. */
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
	int fd = open_it("/", O_RDONLY);

	SYS(sys, syncfs, fd);
	SYS(sys, close, fd);
	fd = open_it("/m", O_RDONLY);
	SYS(sys, syncfs, fd);
	SYS(sys, close, fd);
}

static void random_script(unsigned seed)
{
	char *before, *after;
	unsigned step;

	rng = seed * 7919U + 1;
	memfs_mount(fs, "/m");
	memfs_set_mode(fs, seed & 1 ? MEMFS_ORDERED : MEMFS_STRICT);
	for (step = 0; step < 60; step++)
		random_step();
	if (seed % 3 == 0)
		sync_all();
	before = systree(sys, "/");
	links_are_right(before);
	cut(seed);
	after = systree(sys, "/");
	links_are_right(after);
	if (seed % 3 == 0)
		ck_assert_str_eq(before, after);
	free(before);
	cut(seed + 1);
	before = systree(sys, "/");
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	for (step = 0; step < 60; step++)
		random_step();
}

START_TEST(random_scripts_end_well)
{
	unsigned i;

	for (i = 0; i < SCRIPTS; i++) {
		random_script((unsigned)_i * SCRIPTS + i);
		teardown();
		setup();
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("memfs_power");
	TCase *tc = tcase_create("power");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_append_leaves_the_beginning_alone);
	tcase_add_test(tc, sectors_fare_each_for_itself);
	tcase_add_test(tc, a_failed_sync_is_not_made_good_by_the_next);
	tcase_add_test(tc, every_descriptor_is_told_of_a_failed_sync_once);
	tcase_add_test(tc, the_time_goes_with_the_data);
	tcase_add_test(tc, a_file_that_comes_back_shares_no_inode_number);
	tcase_add_test(tc, a_kill_keeps_what_was_written);
	tcase_add_test(tc, the_nth_change_does_not_happen);
	tcase_add_test(tc, one_mount_goes_and_comes_back);
	tcase_add_test(tc, a_dead_mount_answers_its_error);
	tcase_add_loop_test(tc, random_scripts_end_well, 0, 10);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
