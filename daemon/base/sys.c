/*
 * The kernel's system calls behind struct sys; those that flush are in
 * sys_flush.c. No other file of the daemon makes any.
 */
#include "daemon/base/sys.h"
#include "daemon/base/sys_kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/sys_cache.h"
#include "daemon/base/sys_flush.h"

#define NS_PER_S 1000000000LL

struct sys_dir {
	DIR *stream;
};

static int result(int r)
{
	return r < 0 ? -errno : r;
}

static int64_t ns_of(struct timespec ts)
{
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int kernel_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	int fd;

	(void)sys;
	do
		fd = openat(dirfd, path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	return result(fd);
}

/* EAGAIN: something was renamed meanwhile, so that the kernel can't tell. */
static int resolve(int dirfd, const char *path, uint64_t flags,
    uint64_t how_far)
{
	struct open_how how = { .flags = flags | O_DIRECTORY | O_CLOEXEC,
		.resolve = how_far };
	long fd;

	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return result((int)fd);
}

static int kernel_open_below(const struct sys *sys, int dirfd, const char *path)
{
	(void)sys;
	return resolve(dirfd, path, O_RDONLY,
	    RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

static int is_below(int dirfd, const char *path, uint64_t how_far)
{
	int fd = resolve(dirfd, path, O_PATH, RESOLVE_BENEATH | how_far);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int kernel_stays_below(const struct sys *sys, int dirfd,
    const char *path)
{
	int r;

	(void)sys;
	r = is_below(dirfd, path, RESOLVE_NO_SYMLINKS);
	if (r != -ELOOP)
		return r;
	r = is_below(dirfd, path, RESOLVE_NO_MAGICLINKS);
	return r == -EXDEV ? r : -ELOOP;
}

/* Never retried: on Linux the descriptor is gone even after EINTR. */
static int kernel_close(const struct sys *sys, int fd)
{
	(void)sys;
	return result(close(fd));
}

static ssize_t kernel_pread(const struct sys *sys, int fd, void *buf,
    size_t len, off_t offset)
{
	ssize_t n;

	(void)sys;
	do
		n = pread(fd, buf, len, offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int kernel_write_all(const struct sys *sys, int fd, const void *buf,
    size_t len)
{
	const char *p = buf;
	ssize_t n;

	(void)sys;
	while (len > 0) {
		n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static ssize_t kernel_pwrite(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	ssize_t n;

	(void)sys;
	do
		n = pwrite(fd, buf, len, offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int kernel_ftruncate(const struct sys *sys, int fd, off_t size)
{
	int r;

	(void)sys;
	do
		r = ftruncate(fd, size);
	while (r < 0 && errno == EINTR);
	return result(r);
}

static int kernel_fchmod(const struct sys *sys, int fd, mode_t mode)
{
	(void)sys;
	return result(fchmod(fd, mode));
}

static int kernel_fchmodat(const struct sys *sys, int dirfd, const char *path,
    mode_t mode)
{
	(void)sys;
	return result(fchmodat(dirfd, path, mode, 0));
}

static int kernel_futimens_now(const struct sys *sys, int fd)
{
	(void)sys;
	return result(futimens(fd, NULL));
}

static void fill_stat(struct sys_stat *out, const struct stat *st)
{
	*out = (struct sys_stat){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime_ns = ns_of(st->st_mtim),
		.ctime_ns = ns_of(st->st_ctim),
	};
}

static int kernel_fstat(const struct sys *sys, int fd, struct sys_stat *out)
{
	struct stat st;

	(void)sys;
	if (fstat(fd, &st) < 0)
		return -errno;
	fill_stat(out, &st);
	return 0;
}

static int stat_path(int dirfd, const char *path, int flags,
    struct sys_stat *out)
{
	struct stat st;

	if (fstatat(dirfd, path, &st, flags) < 0)
		return -errno;
	fill_stat(out, &st);
	return 0;
}

static int kernel_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *out)
{
	(void)sys;
	return stat_path(dirfd, path, AT_SYMLINK_NOFOLLOW, out);
}

static int kernel_statat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *out)
{
	(void)sys;
	return stat_path(dirfd, path, 0, out);
}

/* The kernel says "(deleted)" in the text alone, where a name may say it
 * too. */
static int kernel_fd_path(const struct sys *sys, int fd, char *buf, size_t size)
{
	static const char deleted[] = " (deleted)";
	const size_t suffix = sizeof(deleted) - 1;
	struct stat st;
	char link[64];
	ssize_t n;

	(void)sys;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, size);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	if ((size_t)n < suffix || strcmp(buf + n - suffix, deleted) != 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -ENOENT : 0;
}

static int kernel_linkat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	(void)sys;
	return result(linkat(olddirfd, oldpath, newdirfd, newpath, 0));
}

static int kernel_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	(void)sys;
	return result(renameat(olddirfd, oldpath, newdirfd, newpath));
}

static int kernel_unlinkat(const struct sys *sys, int dirfd, const char *path)
{
	(void)sys;
	return result(unlinkat(dirfd, path, 0));
}

static int kernel_rmdirat(const struct sys *sys, int dirfd, const char *path)
{
	(void)sys;
	return result(unlinkat(dirfd, path, AT_REMOVEDIR));
}

static int kernel_mkdirat(const struct sys *sys, int dirfd, const char *path,
    mode_t mode)
{
	(void)sys;
	return result(mkdirat(dirfd, path, mode));
}

static ssize_t kernel_readlinkat(const struct sys *sys, int dirfd,
    const char *path, char *buf, size_t size)
{
	ssize_t n;

	(void)sys;
	n = readlinkat(dirfd, path, buf, size);
	return n < 0 ? -errno : n;
}

static int kernel_flock_try(const struct sys *sys, int fd)
{
	int r;

	(void)sys;
	do
		r = flock(fd, LOCK_EX | LOCK_NB);
	while (r < 0 && errno == EINTR);
	return result(r);
}

static int kernel_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **out)
{
	struct sys_dir *dir;
	int fd, r;

	fd = kernel_openat(sys, dirfd, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	dir = malloc(sizeof(*dir));
	if (dir == NULL) {
		close(fd);
		return -ENOMEM;
	}
	dir->stream = fdopendir(fd);
	if (dir->stream == NULL) {
		r = -errno;
		close(fd);
		free(dir);
		return r;
	}
	*out = dir;
	return 0;
}

static int kernel_dir_next(const struct sys *sys, struct sys_dir *dir,
    struct sys_dirent *entry)
{
	struct dirent *d;

	(void)sys;
	do {
		errno = 0;
		d = readdir(dir->stream);
		if (d == NULL)
			return -errno;
	} while (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0);
	*entry = (struct sys_dirent){
		.name = d->d_name,
		.ino = d->d_ino,
		.type = d->d_type,
	};
	return 1;
}

static void kernel_dir_close(const struct sys *sys, struct sys_dir *dir)
{
	(void)sys;
	if (dir == NULL)
		return;
	closedir(dir->stream);
	free(dir);
}

static int64_t kernel_now_wall(const struct sys *sys)
{
	struct timespec ts;

	(void)sys;
	clock_gettime(CLOCK_REALTIME, &ts);
	return ns_of(ts);
}

static int64_t kernel_now_mono(const struct sys *sys)
{
	struct timespec ts;

	(void)sys;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ns_of(ts);
}

static void kernel_sleep_ns(const struct sys *sys, int64_t ns)
{
	struct timespec ts;

	(void)sys;
	if (ns <= 0)
		return;
	ts = (struct timespec){ .tv_sec = ns / NS_PER_S,
		.tv_nsec = ns % NS_PER_S };
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

const struct sys sys_kernel = {
	.openat = kernel_openat,
	.close = kernel_close,
	.pread = kernel_pread,
	.write_all = kernel_write_all,
	.pwrite = kernel_pwrite,
	.ftruncate = kernel_ftruncate,
	.fchmod = kernel_fchmod,
	.fchmodat = kernel_fchmodat,
	.futimens_now = kernel_futimens_now,
	.fstat = kernel_fstat,
	.lstatat = kernel_lstatat,
	.statat = kernel_statat,
	.mount_id = sys_kernel_mount_id,
	.fs_type = sys_kernel_fs_type,
	.fd_path = kernel_fd_path,
	.open_below = kernel_open_below,
	.stays_below = kernel_stays_below,
	.linkat = kernel_linkat,
	.renameat = kernel_renameat,
	.unlinkat = kernel_unlinkat,
	.rmdirat = kernel_rmdirat,
	.mkdirat = kernel_mkdirat,
	.readlinkat = kernel_readlinkat,
	.fsync = sys_flush_fsync,
	.fdatasync = sys_flush_fdatasync,
	.syncfs = sys_flush_syncfs,
	.write_out_begin = sys_flush_begin,
	.write_out_wait = sys_flush_wait,
	.fsync_carries = sys_flush_carries,
	.flock_try = kernel_flock_try,
	.drop_cache = sys_cache_drop,
	.cache_holds = sys_cache_holds,
	.dir_open = kernel_dir_open,
	.dir_next = kernel_dir_next,
	.dir_close = kernel_dir_close,
	.now_wall = kernel_now_wall,
	.now_mono = kernel_now_mono,
	.sleep_ns = kernel_sleep_ns,
};
