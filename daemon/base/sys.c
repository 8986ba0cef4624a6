/*
 * The kernel's system calls behind struct sys. sys_path.c has the calls with a
 * path, and sys_flush.c the flushes.
 */
#include "daemon/base/sys.h"
#include "daemon/base/sys_kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/sys_cache.h"
#include "daemon/base/sys_flush.h"
#include "daemon/base/sys_path.h"
#include "daemon/base/time.h"

struct sys_dir {
	DIR *stream;
};

static int result(int r)
{
	return r < 0 ? -errno : r;
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

/* musl's fchmod(3) also changes a file that was opened with O_PATH. */
static int kernel_fchmod(const struct sys *sys, int fd, mode_t mode)
{
	(void)sys;
	return result((int)syscall(SYS_fchmod, fd, mode));
}

static int kernel_futimens_now(const struct sys *sys, int fd)
{
	(void)sys;
	return result(futimens(fd, NULL));
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

	fd = sys_path_openat(sys, dirfd, path, O_RDONLY | O_DIRECTORY, 0);
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
	(void)sys;
	return time_now_ns(CLOCK_REALTIME);
}

static int64_t kernel_now_mono(const struct sys *sys)
{
	(void)sys;
	return time_now_ns(CLOCK_MONOTONIC);
}

static int64_t kernel_now_boot(const struct sys *sys)
{
	(void)sys;
	return time_now_ns(CLOCK_BOOTTIME);
}

static void kernel_sleep_ns(const struct sys *sys, int64_t ns)
{
	struct timespec ts;

	(void)sys;
	if (ns <= 0)
		return;
	ts = time_spec(ns);
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

const struct sys sys_kernel = {
	.openat = sys_path_openat,
	.close = kernel_close,
	.pread = kernel_pread,
	.write_all = kernel_write_all,
	.pwrite = kernel_pwrite,
	.ftruncate = kernel_ftruncate,
	.fchmod = kernel_fchmod,
	.chmod_trusted = sys_path_chmod_trusted,
	.futimens_now = kernel_futimens_now,
	.fstat = sys_path_fstat,
	.lstatat = sys_path_lstatat,
	.mount_id = sys_kernel_mount_id,
	.fs_type = sys_kernel_fs_type,
	.fd_path = sys_path_of_fd,
	.open_below = sys_path_open_below,
	.stays_below = sys_path_stays_below,
	.linkat = sys_path_linkat,
	.renameat = sys_path_renameat,
	.unlinkat = sys_path_unlinkat,
	.rmdirat = sys_path_rmdirat,
	.mkdirat = sys_path_mkdirat,
	.readlinkat = sys_path_readlinkat,
	.fsync = sys_flush_fsync,
	.fdatasync = sys_flush_fdatasync,
	.syncfs = sys_flush_syncfs,
	.write_out_begin = sys_flush_begin,
	.write_out_wait = sys_flush_wait,
	.fsync_covers_all = sys_flush_covers_all,
	.flock_try = kernel_flock_try,
	.drop_cache = sys_cache_drop,
	.cache_holds = sys_cache_holds,
	.dir_open = kernel_dir_open,
	.dir_next = kernel_dir_next,
	.dir_close = kernel_dir_close,
	.now_wall = kernel_now_wall,
	.now_mono = kernel_now_mono,
	.now_boot = kernel_now_boot,
	.sleep_ns = kernel_sleep_ns,
};
