/*
 * The kernel's calls that flush, and which file systems flush how.
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

/* A sync that failed has consumed the error: asking again would answer 0
 * over data that is gone. Only EINTR says that nothing was decided. */
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

/* WRITE once more: what was being written when begin came is dirty still. */
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

/* ext2 has the same number, and ext4 can do without a journal: then an fsync
 * is of one file and nothing else. With one, the kernel tells its thread. */
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
 * ext4 and XFS have one log for all names and sizes, in the order they were
 * changed, and an fsync writes it up to the file's own last change; data that
 * was written out before has its place and size in it by then. btrfs logs a
 * single file in an fsync, by design, and of others nothing is known.
 */
int sys_flush_carries(const struct sys *sys, int fd)
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
