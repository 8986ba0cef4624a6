/*
 * Proves the kernel's table and the helpers on it. Failures come back as
 * negative errno. Whole files are read whatever size fstat returned. Parents
 * are made with the requested mode, and a file on the way is reported. A FIFO
 * blocks no caller. No path with dots leads out of its directory. A time that
 * does not fit nanoseconds is the nearest one that does.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/sys.h"
#include "daemon/base/time.h"
#include "tests/lib/suite.h"

static const struct sys *sys = &sys_kernel;
static char root[PATH_MAX];
static int rootfd;

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/refd-sys-XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(root));
	rootfd = open(root, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(rootfd, 0);
	umask(0);
}

static void teardown(void)
{
	char cmd[PATH_MAX + 16];

	close(rootfd);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", root);
	ck_assert_int_eq(system(cmd), 0);
}

static void put(const char *path, const char *text)
{
	int fd =
	    SYS(sys, openat, rootfd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(SYS(sys, write_all, fd, text, strlen(text)), 0);
	ck_assert_int_eq(SYS(sys, close, fd), 0);
}

CASE(.setup = setup, .teardown = teardown);

TEST(failures_are_negative_errno)
{
	struct sys_stat st;
	char buf[8];

	ck_assert_int_eq(SYS(sys, openat, rootfd, "no", O_RDONLY, 0), -ENOENT);
	ck_assert_int_eq(SYS(sys, close, -1), -EBADF);
	ck_assert_int_eq(SYS(sys, pread, -1, buf, 1, 0), -EBADF);
	ck_assert_int_eq(SYS(sys, write_all, -1, buf, 1), -EBADF);
	ck_assert_int_eq(SYS(sys, lstatat, rootfd, "no", &st), -ENOENT);
	ck_assert_int_eq(SYS(sys, unlinkat, rootfd, "no"), -ENOENT);
	ck_assert_int_eq(SYS(sys, rmdirat, rootfd, "no"), -ENOENT);
	ck_assert_int_eq(SYS(sys, fsync, -1), -EBADF);
	ck_assert_int_eq(SYS(sys, syncfs, -1), -EBADF);
	ck_assert_int_eq(SYS(sys, drop_cache, -1), -EBADF);
	ck_assert_int_eq(SYS(sys, readlinkat, rootfd, ".", buf, 8), -EINVAL);
	put("full", "x");
	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "full", 0777), -EEXIST);
}

TEST(descriptors_are_closed_on_exec)
{
	int fd = SYS(sys, openat, rootfd, ".", O_RDONLY, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

TEST(a_second_flock_is_refused_at_once)
{
	int a, b;

	put("lock", "");
	a = SYS(sys, openat, rootfd, "lock", O_RDWR, 0);
	b = SYS(sys, openat, rootfd, "lock", O_RDWR, 0);
	ck_assert_int_eq(SYS(sys, flock_try, a), 0);
	ck_assert_int_eq(SYS(sys, flock_try, b), -EAGAIN);
	close(a);
	ck_assert_int_eq(SYS(sys, flock_try, b), 0);
	close(b);
}

TEST(links_that_lead_out)
{
	static const struct {
		const char *path;
		bool is_plain;
	} good[] = { { ".", true }, { "d/e", true }, { "d/in", false },
		{ "d/in/../e", false }, { "d/./e", false }, { "d/e/", false } };
	bool is_plain;
	size_t i;
	int fd;

	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "d", 0777), 0);
	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "d/e", 0777), 0);
	ck_assert_int_eq(symlinkat("/tmp", rootfd, "d/abs"), 0);
	ck_assert_int_eq(symlinkat("../..", rootfd, "d/up"), 0);
	ck_assert_int_eq(symlinkat("e", rootfd, "d/in"), 0);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		fd = SYS(sys, open_below, rootfd, good[i].path, &is_plain);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(is_plain, good[i].is_plain);
		close(fd);
	}
	ck_assert_int_eq(SYS(sys, open_below, rootfd, "d/up", &is_plain),
	    -EXDEV);
	ck_assert_int_eq(SYS(sys, open_below, rootfd, "d/abs", &is_plain),
	    -EXDEV);
	ck_assert_int_eq(SYS(sys, open_below, rootfd, "../x", &is_plain),
	    -EXDEV);
	ck_assert_int_eq(SYS(sys, stays_below, rootfd, "d/e"), 0);
	ck_assert_int_eq(SYS(sys, stays_below, rootfd, "d/in"), -ELOOP);
	ck_assert_int_eq(SYS(sys, stays_below, rootfd, "d/up"), -EXDEV);
	ck_assert_int_eq(SYS(sys, stays_below, rootfd, "d/abs"), -EXDEV);
	ck_assert_int_eq(SYS(sys, stays_below, rootfd, "d/abs/x"), -EXDEV);
	ck_assert_int_eq(SYS(sys, stays_below, rootfd, "d/no/x"), -ENOENT);
}

static atomic_int nr_renames;

static void *rename_to_and_fro(void *arg)
{
	for (nr_renames = 0; nr_renames < 40000; nr_renames++) {
		renameat(rootfd, "a", rootfd, "b");
		renameat(rootfd, "b", rootfd, "a");
	}
	return arg;
}

/* The kernel gives up on a path with ".." if any rename happens meanwhile. */
TEST(renames_stop_no_path_with_dots)
{
	pthread_t thread;
	bool is_plain;
	int fd;

	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "a", 0777), 0);
	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "d", 0777), 0);
	nr_renames = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, rename_to_and_fro, NULL),
	    0);
	while (nr_renames < 40000) {
		fd =
		    SYS(sys, open_below, rootfd, "d/../d/../d/../d", &is_plain);
		ck_assert_int_ge(fd, 0);
		close(fd);
	}
	pthread_join(thread, NULL);
}

/* A call can have names in two directories. */
TEST(names_in_directories)
{
	struct sys_stat st;
	int fd, later;

	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "d", 0777), 0);
	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "e", 0777), 0);
	put("d/file", "x");
	ck_assert_int_eq(symlinkat("file", rootfd, "d/link"), 0);
	fd = dup(rootfd);
	close(fd);
	/* The link itself is linked, not its target. */
	ck_assert_int_eq(SYS(sys, linkat, rootfd, "d/link", rootfd, "e/a"), 0);
	ck_assert_int_eq(SYS(sys, lstatat, rootfd, "e/a", &st), 0);
	ck_assert(S_ISLNK(st.mode));
	ck_assert_int_eq(SYS(sys, renameat, rootfd, "d/file", rootfd, "e/b"),
	    0);
	ck_assert_int_eq(SYS(sys, linkat, rootfd, "d/no", rootfd, "e/c"),
	    -ENOENT);
	ck_assert_int_eq(SYS(sys, linkat, rootfd, "e/b", rootfd, "no/c"),
	    -ENOENT);
	/* All directories are closed again. */
	later = dup(rootfd);
	ck_assert_int_eq(later, fd);
	close(later);
}

/* The kernel looks for access, paths and room before it changes a name. */
TEST(what_may_have_happened)
{
	static const int definite[] = { 0, -EISDIR, -ENOTEMPTY, -EEXIST,
		-ENOTDIR, -ENOENT, -ENOSPC, -EDQUOT, -EACCES, -EPERM, -EROFS,
		-EXDEV };
	size_t i;

	for (i = 0; i < sizeof(definite) / sizeof(*definite); i++)
		ck_assert(!sys_may_have_happened(definite[i]));
	ck_assert(sys_may_have_happened(-EIO));
	ck_assert(sys_may_have_happened(-ENOMEM));
	ck_assert(sys_may_have_happened(-ESTALE));
	ck_assert(sys_may_have_happened(-ETIMEDOUT));
}

TEST(dots_lead_nowhere, .times = 7)
{
	static const char *const paths[] = { "..", "../x", "d/..", "d/../x",
		"/", "/tmp", "" };
	const char *path = paths[_i];
	struct sys_stat st;
	char buf[8];

	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "d", 0777), 0);
	ck_assert_int_eq(SYS(sys, openat, rootfd, path, O_RDONLY, 0), -EINVAL);
	ck_assert_int_eq(SYS(sys, lstatat, rootfd, path, &st), -EINVAL);
	ck_assert_int_eq(SYS(sys, readlinkat, rootfd, path, buf, 8), -EINVAL);
	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, path, 0777), -EINVAL);
	ck_assert_int_eq(SYS(sys, rmdirat, rootfd, path), -EINVAL);
	ck_assert_int_eq(SYS(sys, unlinkat, rootfd, path), -EINVAL);
	ck_assert_int_eq(SYS(sys, renameat, rootfd, "d", rootfd, path),
	    -EINVAL);
	ck_assert_int_eq(SYS(sys, linkat, rootfd, path, rootfd, "x"), -EINVAL);
}

TEST(mount_ids_tell_mounts_apart)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY);
	uint64_t a, b, c;

	ck_assert_int_eq(SYS(sys, mount_id, rootfd, &a), 0);
	ck_assert_int_eq(SYS(sys, mount_id, rootfd, &b), 0);
	ck_assert_int_eq(SYS(sys, mount_id, proc, &c), 0);
	ck_assert(a == b);
	ck_assert(a != c);
	close(proc);
}

/* Reads the mount id of the directory in this namespace and in a new one. */
static void expect_the_same_in_a_new_namespace(void)
{
	uint64_t a, b;

	ck_assert_int_eq(SYS(sys, mount_id, rootfd, &a), 0);
	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	close(rootfd);
	rootfd = open(root, O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(SYS(sys, mount_id, rootfd, &b), 0);
	ck_assert(a == b);
}

/* Proves that a mount id stays the same in a new mount namespace: a hardened
 * unit gives each start of the daemon a namespace. The test uses the file
 * system of TMPDIR, if the kernel numbers such file systems, and a tmpfs. */
TEST(a_mount_namespace_of_its_own_changes_nothing)
{
	uint64_t type;

	if (unshare(CLONE_NEWNS) < 0) {
		suite_skip(__func__, "no mount namespace without privileges");
		return;
	}
	ck_assert_int_eq(SYS(sys, fs_type, rootfd, &type), 0);
	if (type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC ||
	    type == BTRFS_SUPER_MAGIC || type == F2FS_SUPER_MAGIC)
		expect_the_same_in_a_new_namespace();
	ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL),
	    0);
	ck_assert_int_eq(mount("none", root, "tmpfs", 0, NULL), 0);
	close(rootfd);
	rootfd = open(root, O_RDONLY | O_DIRECTORY);
	expect_the_same_in_a_new_namespace();
	ck_assert_int_eq(umount2(root, MNT_DETACH), 0);
}

TEST(a_directory_is_listed_without_dots)
{
	struct sys_dir *dir;
	struct sys_dirent entry;
	int r;
	unsigned files = 0, dirs = 0;

	put("one", "");
	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "two", 0777), 0);
	ck_assert_int_eq(SYS(sys, dir_open, rootfd, ".", &dir), 0);
	while ((r = SYS(sys, dir_next, dir, &entry)) == 1) {
		files += strcmp(entry.name, "one") == 0;
		dirs += strcmp(entry.name, "two") == 0;
		ck_assert_int_ne(entry.name[0], '.');
	}
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(files, 1);
	ck_assert_uint_eq(dirs, 1);
	SYS(sys, dir_close, dir);
	ck_assert_int_eq(SYS(sys, dir_open, rootfd, "one", &dir), -ENOTDIR);
}

TEST(a_descriptor_tells_its_path)
{
	char want[PATH_MAX + 8], path[PATH_MAX], small[4];
	int fd;

	put("f", "");
	fd = SYS(sys, openat, rootfd, "f", O_RDONLY, 0);
	snprintf(want, sizeof(want), "%s/f", root);
	ck_assert_int_eq(SYS(sys, fd_path, fd, path, sizeof(path)), 0);
	ck_assert_str_eq(path, want);
	ck_assert_int_eq(SYS(sys, fd_path, fd, small, sizeof(small)),
	    -ENAMETOOLONG);
	ck_assert_int_eq(SYS(sys, unlinkat, rootfd, "f"), 0);
	ck_assert_int_eq(SYS(sys, fd_path, fd, path, sizeof(path)), -ENOENT);
	close(fd);
	/* a name that looks like the kernel's note about a deleted file */
	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "d (deleted)", 0777), 0);
	fd = SYS(sys, openat, rootfd, "d (deleted)", O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_eq(SYS(sys, fd_path, fd, path, sizeof(path)), 0);
	ck_assert_int_eq(SYS(sys, rmdirat, rootfd, "d (deleted)"), 0);
	ck_assert_int_eq(SYS(sys, fd_path, fd, path, sizeof(path)), -ENOENT);
	close(fd);
}

TEST(clocks_run_and_sleep_takes_its_time)
{
	int64_t t = SYS(sys, now_mono);

	SYS(sys, sleep_ns, 1000000);
	ck_assert_int_ge(SYS(sys, now_mono) - t, 1000000);
	ck_assert_int_gt(SYS(sys, now_wall), 1600000000LL * 1000000000);
}

/* Nanoseconds end in 2262, and some file systems go further in both
 * directions. */
TEST(a_time_of_a_file_never_wraps, .times = 8)
{
	static const struct {
		time_t set;
		int64_t ns;
	} times[] = {
		{ 1700000000, 1700000000 * NS_PER_S + 5 },
		{ -1, -NS_PER_S + 5 },
		{ TIME_LAST_S - 1, (TIME_LAST_S - 1) * NS_PER_S + 5 },
		{ 9223372037, TIME_LAST_S * NS_PER_S },
		{ 18446744073, TIME_LAST_S * NS_PER_S },
		{ INT64_MAX, TIME_LAST_S * NS_PER_S },
		{ -9223372037, TIME_FIRST_S * NS_PER_S },
		{ INT64_MIN, TIME_FIRST_S * NS_PER_S },
	};
	const struct timespec t = { times[_i].set, 5 }, both[] = { t, t };
	struct sys_stat st;
	struct stat kept;

	ck_assert_int_eq(time_ns(t), times[_i].ns);
	put("f", "");
	ck_assert_int_eq(utimensat(rootfd, "f", both, 0), 0);
	ck_assert_int_eq(fstatat(rootfd, "f", &kept, 0), 0);
	ck_assert_int_eq(SYS(sys, lstatat, rootfd, "f", &st), 0);
	ck_assert_int_eq(st.mtime_ns, time_ns(kept.st_mtim));
}

TEST(a_file_is_read_whole_and_terminated)
{
	char *buf;
	size_t len;

	put("f", "hello\n");
	ck_assert_int_eq(sys_read_file(sys, rootfd, "f", 6, &buf, &len), 0);
	ck_assert_uint_eq(len, 6);
	ck_assert_str_eq(buf, "hello\n");
	free(buf);
	put("f", "");
	ck_assert_int_eq(sys_read_file(sys, rootfd, "f", 0, &buf, &len), 0);
	ck_assert_uint_eq(len, 0);
	ck_assert_str_eq(buf, "");
	free(buf);
}

/* /proc files have size 0 for fstat: only a read shows the size. */
TEST(a_size_that_lies_does_not_matter)
{
	char *buf;
	size_t len;

	ck_assert_int_eq(sys_read_file(sys, AT_FDCWD, "/proc/self/status",
			     1 << 20, &buf, &len),
	    0);
	ck_assert_uint_gt(len, 100);
	ck_assert_uint_eq(strlen(buf), len);
	free(buf);
	ck_assert_int_eq(sys_read_file(sys, AT_FDCWD, "/proc/self/status", 50,
			     &buf, &len),
	    -EFBIG);
}

TEST(what_is_no_file_is_told)
{
	char path[PATH_MAX + 8];
	char *buf;
	size_t len;

	put("f", "hello\n");
	snprintf(path, sizeof(path), "%s/fifo", root);
	ck_assert_int_eq(mkfifo(path, 0666), 0);
	ck_assert_int_eq(sys_read_file(sys, rootfd, "f", 5, &buf, &len),
	    -EFBIG);
	ck_assert_int_eq(sys_read_file(sys, rootfd, ".", 5, &buf, &len),
	    -EISDIR);
	ck_assert_int_eq(sys_read_file(sys, rootfd, "fifo", 5, &buf, &len),
	    -EINVAL);
	ck_assert_int_eq(sys_read_file(sys, rootfd, "no", 5, &buf, &len),
	    -ENOENT);
}

/* Anybody with write access can make a FIFO. No caller waits for its other
 * end. */
TEST(a_fifo_is_opened_at_once)
{
	char path[PATH_MAX + 8];
	int fd;

	snprintf(path, sizeof(path), "%s/fifo", root);
	ck_assert_int_eq(mkfifo(path, 0666), 0);
	fd = SYS(sys, openat, rootfd, "fifo", O_RDONLY, 0);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(SYS(sys, openat, rootfd, "fifo", O_WRONLY, 0), -ENXIO);
}

static uint32_t mode_of(const char *path)
{
	struct sys_stat st;

	ck_assert_int_eq(SYS(sys, lstatat, rootfd, path, &st), 0);
	return st.mode & 07777;
}

TEST(parents_are_made_with_their_mode)
{
	ck_assert_int_eq(sys_make_parents(sys, rootfd, "a/b/c/d", 02775), 3);
	ck_assert_uint_eq(mode_of("a"), 02775);
	ck_assert_uint_eq(mode_of("a/b/c"), 02775);
	ck_assert_int_eq(SYS(sys, unlinkat, rootfd, "a/b/c/d"), -ENOENT);
	ck_assert_int_eq(sys_make_parents(sys, rootfd, "a/b/x/y/z", 0700), 2);
	/* the group and the setgid bit are inherited */
	ck_assert_uint_eq(mode_of("a/b/x") & 0777, 0700);
	ck_assert_uint_eq(mode_of("a/b/x/y") & 0777, 0700);
	ck_assert_uint_eq(mode_of("a/b"), 02775);
	ck_assert_int_eq(sys_make_parents(sys, rootfd, "a/b/c/d", 0700), 0);
	ck_assert_int_eq(sys_make_parents(sys, rootfd, "plain", 0700), 0);
}

TEST(a_parent_that_is_a_file_is_enotdir)
{
	char longpath[5000];

	put("f", "");
	ck_assert_int_eq(sys_make_parents(sys, rootfd, "f/x", 0777), -ENOTDIR);
	ck_assert_int_eq(sys_make_parents(sys, rootfd, "f/x/y", 0777),
	    -ENOTDIR);
	memset(longpath, 'a', sizeof(longpath));
	longpath[10] = '/';
	longpath[sizeof(longpath) - 1] = '\0';
	ck_assert_int_eq(sys_make_parents(sys, rootfd, longpath, 0777),
	    -ENAMETOOLONG);
}

TEST(a_removed_root_is_enoent)
{
	int fd;

	ck_assert_int_eq(SYS(sys, mkdirat, rootfd, "gone", 0777), 0);
	fd = SYS(sys, openat, rootfd, "gone", O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_eq(SYS(sys, rmdirat, rootfd, "gone"), 0);
	ck_assert_int_eq(sys_make_parents(sys, fd, "a/b/c", 0777), -ENOENT);
	close(fd);
}
