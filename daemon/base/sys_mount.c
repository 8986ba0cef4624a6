/*
 * The life of a file system lasts from the load of its superblock into memory
 * until the unload. During a life the page cache has the last written content,
 * but a new life begins with the content of the disk.
 *
 * The happy path: ext4, XFS, btrfs and F2FS have a directory in /sys/fs during
 * the life of the superblock. The inode number of the directory is a counter of
 * the kernel for all of sysfs. So the number does not come again before the
 * next boot, and it is the same in every mount namespace and for every bind
 * mount. A tmpfs has a random id from its creation, in statfs (since Linux
 * 5.13).
 *
 * What fails: other file systems have no such number, so their life is the id
 * of the mount, by statx. The same holds without /sys. In a different mount
 * namespace the same mount has a different id, and before 6.8 the kernel reuses
 * ids.
 */
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/base/sys_path.h"
#include "proto/lib/mount_id.h"

/* Distinguishes ids of superblocks from ids of mounts, because the kernel's
 * counters stay below. */
#define IS_SUPERBLOCK (UINT64_C(1) << 63)
/* The journal uses this bit for a mark. The kernel's counters stay below, but a
 * random id may have the bit, so it is cleared there. */
#define IS_RESERVED (UINT64_C(1) << 62)

/* Finds the directory by the device name, because /sys/dev/block/7:1 leads to
 * .../block/loop1. */
static bool directory_by_device(const char *kind, const struct stat *st,
    char *path, size_t size)
{
	char link[64], target[512], *name;
	ssize_t n;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st->st_dev),
	    minor(st->st_dev));
	n = sys_path_readlinkat(NULL, SYS_TRUSTED, link, target,
	    sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	name = strrchr(target, '/');
	if (name == NULL)
		return false;
	return (size_t)snprintf(path, size, "/sys/fs/%s%s", kind, name) < size;
}

/* Finds the directory by the uuid, because btrfs may lie on several devices. */
static bool directory_of_btrfs(int fd, char *path, size_t size)
{
	struct btrfs_ioctl_fs_info_args info;
	const uint8_t *u = info.fsid;

	memset(&info, 0, sizeof(info));
	if (ioctl(fd, BTRFS_IOC_FS_INFO, &info) < 0)
		return false;
	snprintf(path, size,
	    "/sys/fs/btrfs/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
	    "%02x%02x%02x%02x%02x%02x",
	    u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10],
	    u[11], u[12], u[13], u[14], u[15]);
	return true;
}

static bool directory_of(int fd, char *path, size_t size)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
		return directory_by_device("ext4", &st, path, size);
	case XFS_SUPER_MAGIC:
		return directory_by_device("xfs", &st, path, size);
	case F2FS_SUPER_MAGIC:
		return directory_by_device("f2fs", &st, path, size);
	case BTRFS_SUPER_MAGIC:
		return directory_of_btrfs(fd, path, size);
	default:
		return false;
	}
}

/* The kernel's directory of FD's file system. */
static bool id_in_sysfs(int fd, uint64_t *id)
{
	struct sys_stat st;
	char path[128];

	if (!directory_of(fd, path, sizeof(path)) ||
	    sys_path_lstatat(NULL, SYS_TRUSTED, path, &st) < 0)
		return false;
	*id = st.ino;
	return true;
}

static bool id_of_tmpfs(int fd, uint64_t *id)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0 || (unsigned long)fs.f_type != TMPFS_MAGIC)
		return false;
	memcpy(id, &fs.f_fsid, sizeof(*id));
	return *id != 0;
}

int sys_mount_id(const struct sys *sys, int fd, uint64_t *id)
{
	uint64_t made;

	(void)sys;
	if (id_in_sysfs(fd, &made))
		*id = IS_SUPERBLOCK | made;
	else if (id_of_tmpfs(fd, &made))
		*id = IS_SUPERBLOCK | (made & ~IS_RESERVED);
	else
		return mount_id_of(fd, "", MOUNT_ID_UNIQUE, id);
	return 0;
}
