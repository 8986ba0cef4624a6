/*
 * The kernel's system calls behind struct sys. sys_path.c has the calls with a
 * path, because these need rules of their own.
 */
#include "daemon/base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/flushing.h"
#include "daemon/base/sys_path.h"
#include "daemon/base/time.h"

#define CACHE_PAGES 16384 /* pages per look */
/* Flushes that are listed, of all threads together. */
#define SLOTS 64

struct sys_dir {
	DIR *stream;
};

static int result(int r)
{
	return r < 0 ? -errno : r;
}

/* Never retried, because on Linux the descriptor is gone even after EINTR. */
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

/* musl's fchmod(3) also changes a file that was opened with O_PATH, so the
 * system call is used. */
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

static int statfs_of(int fd, struct statfs *fs)
{
	int r;

	do
		r = fstatfs(fd, fs);
	while (r < 0 && errno == EINTR);
	return result(r);
}

static int kernel_fs_type(const struct sys *sys, int fd, uint64_t *type)
{
	struct statfs fs;
	int r = statfs_of(fd, &fs);

	(void)sys;
	if (r == 0)
		*type = (unsigned long)fs.f_type;
	return r;
}

static int kernel_file_id(const struct sys *sys, int dirfd, const char *name,
    struct sys_file_id *id)
{
	struct statx stx;
	struct statfs fs;
	int r = statfs_of(dirfd, &fs);

	(void)sys;
	if (r == 0)
		r = result((int)syscall(SYS_statx, dirfd, name,
		    AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &stx));
	if (r < 0)
		return r;
	memset(id, 0, sizeof(*id));
	memcpy(&id->fs, &fs.f_fsid, sizeof(id->fs));
	id->ino = stx.stx_ino;
	if (stx.stx_mask & STATX_BTIME)
		id->born_ns =
		    stx.stx_btime.tv_sec * 1000000000LL + stx.stx_btime.tv_nsec;
	return 0;
}

/* ---- the flushes in progress ---- */

static struct {
	atomic_int_least64_t since_ns; /* 0: free */
	atomic_int fd;
} slots[SLOTS];

/* If all slots are in use, the flush is not listed. */
static int flushing_begin(int fd)
{
	int64_t now_ns = SYS(&sys_kernel, now_mono);
	int i;

	for (i = 0; i < SLOTS; i++) {
		int_least64_t is_free = 0;

		if (atomic_compare_exchange_strong(&slots[i].since_ns, &is_free,
			now_ns)) {
			atomic_store(&slots[i].fd, fd);
			return i;
		}
	}
	return SLOTS;
}

static void flushing_end(int slot)
{
	if (slot < SLOTS)
		atomic_store(&slots[slot].since_ns, 0);
}

bool flushing_oldest(struct flushing *oldest)
{
	int64_t since_ns;
	size_t i;

	oldest->since_ns = INT64_MAX;
	for (i = 0; i < SLOTS; i++) {
		since_ns = atomic_load(&slots[i].since_ns);
		if (since_ns == 0 || since_ns >= oldest->since_ns)
			continue;
		oldest->since_ns = since_ns;
		oldest->fd = atomic_load(&slots[i].fd);
	}
	return oldest->since_ns != INT64_MAX;
}

/* ---- flushes ---- */

/* A failed sync has consumed the error, and a second call would return 0
 * although data is lost, so only EINTR may be retried. */
static int flush(int fd, int (*call)(int fd))
{
	int slot = flushing_begin(fd), r;

	do
		r = call(fd);
	while (r < 0 && errno == EINTR);
	r = result(r);
	flushing_end(slot);
	return r;
}

static int kernel_fsync(const struct sys *sys, int fd)
{
	(void)sys;
	return flush(fd, fsync);
}

static int kernel_fdatasync(const struct sys *sys, int fd)
{
	(void)sys;
	return flush(fd, fdatasync);
}

static int kernel_syncfs(const struct sys *sys, int fd)
{
	(void)sys;
	return flush(fd, syncfs);
}

static int kernel_write_out_begin(const struct sys *sys, int fd)
{
	(void)sys;
	return result(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
}

/* Begins the write-out once more (SYNC_FILE_RANGE_WRITE), because a page that
 * was under write-back at kernel_write_out_begin() is still dirty. */
static int kernel_write_out_wait(const struct sys *sys, int fd)
{
	int slot = flushing_begin(fd), r;

	(void)sys;
	r = result(sync_file_range(fd, 0, 0,
	    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
		SYNC_FILE_RANGE_WAIT_AFTER));
	flushing_end(slot);
	return r;
}

/* The f_type of ext4 proves no journal, because ext2 has the same f_type, and
 * ext4 can work without a journal. There an fsync covers one file and nothing
 * else. But the kernel has a thread for each journal, so the number of this
 * thread proves a journal. */
static bool ext4_has_journal(int fd)
{
	char link[64], target[PATH_MAX], path[PATH_MAX + 64], task[16] = "";
	const char *name;
	struct stat st;
	ssize_t len;
	int task_fd;

	if (fstat(fd, &st) < 0)
		return false;
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev),
	    minor(st.st_dev));
	len = sys_path_readlinkat(NULL, SYS_TRUSTED, link, target,
	    sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	name = strrchr(target, '/');
	if (name == NULL)
		return false;
	snprintf(path, sizeof(path), "/sys/fs/ext4%s/journal_task", name);
	task_fd = sys_path_openat(NULL, SYS_TRUSTED, path, O_RDONLY, 0);
	if (task_fd < 0)
		return false;
	len = read(task_fd, task, sizeof(task) - 1);
	close(task_fd);
	return len > 0 && task[0] >= '0' && task[0] <= '9';
}

/*
 * ext4 and XFS have one log for all names and sizes, in the order of the
 * changes, and an fsync writes the log up to the last change of the file. Data
 * that was written out before already has its place and size in the log. btrfs
 * logs only a single file in an fsync, by design, and other file systems are
 * unknown.
 */
static int kernel_covers_all(const struct sys *sys, int fd)
{
	struct statfs st;

	(void)sys;
	if (fstatfs(fd, &st) < 0)
		return 0;
	switch ((unsigned long)st.f_type) {
	case XFS_SUPER_MAGIC:
		return 1;
	case EXT4_SUPER_MAGIC:
		return ext4_has_journal(fd);
	}
	return 0;
}

/* ---- the page cache ---- */

/* A drop is only a request, because mapped pages (seen on ext4, XFS and btrfs)
 * and dirty pages stay. A look (mincore(2)) needs a mapping, but never touches
 * its pages. Since Linux 5.2, a process that does not own the file and may not
 * write it is told that all pages are in memory. */
static int kernel_drop_cache(const struct sys *sys, int fd)
{
	(void)sys;
	return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* 1: at least one page of LEN bytes at AT is in memory. */
static int look_at_cache(int fd, off_t at, size_t len, size_t page)
{
	unsigned char there[CACHE_PAGES];
	size_t i, nr = (len + page - 1) / page;
	void *map;
	int r;

	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, at);
	if (map == MAP_FAILED)
		return -errno;
	r = mincore(map, len, there) < 0 ? -errno : 0;
	munmap(map, len);
	for (i = 0; r == 0 && i < nr; i++)
		r = there[i] & 1;
	return r;
}

static int kernel_cache_holds(const struct sys *sys, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), step = page * CACHE_PAGES;
	struct stat st;
	off_t at;
	int r = 0;

	(void)sys;
	if (fstat(fd, &st) < 0)
		return -errno;
	for (at = 0; r == 0 && at < st.st_size; at += (off_t)step)
		r = look_at_cache(fd, at,
		    (size_t)(st.st_size - at) < step ?
			(size_t)(st.st_size - at) :
			step,
		    page);
	return r;
}

/* ---- directories ---- */

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

/* ---- clocks ---- */

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
	.mount_id = sys_mount_id,
	.fs_type = kernel_fs_type,
	.file_id = kernel_file_id,
	.fd_path = sys_path_of_fd,
	.open_below = sys_path_open_below,
	.stays_below = sys_path_stays_below,
	.linkat = sys_path_linkat,
	.renameat = sys_path_renameat,
	.unlinkat = sys_path_unlinkat,
	.rmdirat = sys_path_rmdirat,
	.mkdirat = sys_path_mkdirat,
	.readlinkat = sys_path_readlinkat,
	.fsync = kernel_fsync,
	.fdatasync = kernel_fdatasync,
	.syncfs = kernel_syncfs,
	.write_out_begin = kernel_write_out_begin,
	.write_out_wait = kernel_write_out_wait,
	.fsync_covers_all = kernel_covers_all,
	.flock_try = kernel_flock_try,
	.drop_cache = kernel_drop_cache,
	.cache_holds = kernel_cache_holds,
	.dir_open = kernel_dir_open,
	.dir_next = kernel_dir_next,
	.dir_close = kernel_dir_close,
	.now_wall = kernel_now_wall,
	.now_mono = kernel_now_mono,
	.now_boot = kernel_now_boot,
	.sleep_ns = kernel_sleep_ns,
};
