/*
 * The kernel's flush calls, and the properties of file systems for flushes.
 */
#include "daemon/base/sys_flush.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/base/flushing.h"
#include "daemon/base/sys_path.h"

static int result(int r)
{
	return r < 0 ? -errno : r;
}

/* A failed sync has consumed the error: a second call would return 0 although
 * data is lost. Only EINTR may be retried. */
int sys_flush_fsync(const struct sys *sys, int fd)
{
	int slot = flushing_begin(fd), r;

	(void)sys;
	do
		r = fsync(fd);
	while (r < 0 && errno == EINTR);
	r = result(r);
	flushing_end(slot);
	return r;
}

int sys_flush_fdatasync(const struct sys *sys, int fd)
{
	int slot = flushing_begin(fd), r;

	(void)sys;
	do
		r = fdatasync(fd);
	while (r < 0 && errno == EINTR);
	r = result(r);
	flushing_end(slot);
	return r;
}

int sys_flush_syncfs(const struct sys *sys, int fd)
{
	int slot = flushing_begin(fd), r;

	(void)sys;
	do
		r = syncfs(fd);
	while (r < 0 && errno == EINTR);
	r = result(r);
	flushing_end(slot);
	return r;
}

int sys_flush_begin(const struct sys *sys, int fd)
{
	(void)sys;
	return result(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
}

/* WRITE once more: a page under write-back at the time of begin is still
 * dirty. */
int sys_flush_wait(const struct sys *sys, int fd)
{
	int slot = flushing_begin(fd), r;

	(void)sys;
	r = result(sync_file_range(fd, 0, 0,
	    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
		SYNC_FILE_RANGE_WAIT_AFTER));
	flushing_end(slot);
	return r;
}

/* ext2 has the same number, and ext4 can work without a journal: then an fsync
 * covers one file and nothing else. With a journal, the kernel has a thread for
 * it. */
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
 * logs only a single file in an fsync, by design. Other file systems are
 * unknown.
 */
int sys_flush_covers_all(const struct sys *sys, int fd)
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
