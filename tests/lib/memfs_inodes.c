/*
 * The calls of struct sys that read an inode or change its mode.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

static void fill_stat(const struct inode *node, struct sys_stat *st)
{
	size_t size = node->now.len;

	if (S_ISDIR(node->mode))
		size = MEMFS_PAGE;
	if (S_ISLNK(node->mode))
		size = strlen(node->target);
	*st = (struct sys_stat){
		.dev = node->mnt->dev,
		.ino = node->ino,
		.size = size,
		.mode = node->mode,
		.nlink = inode_nlink(node),
		.uid = node->uid,
		.gid = node->gid,
		.mtime_ns = node->mtime,
		.ctime_ns = node->ctime,
	};
}

static int m_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	struct memfs *fs;
	struct inode *node;
	int r = memfs_enter_at(sys, MEMFS_LSTATAT, dirfd, path, &fs);

	if (r == 0)
		r = walk_to(fs, dirfd, path, WALK_NOFOLLOW, &node);
	if (r == 0)
		fill_stat(node, st);
	return memfs_leave(fs, r);
}

static int m_file_id(const struct sys *sys, int dirfd, const char *name,
    struct sys_file_id *id)
{
	struct memfs *fs;
	struct inode *node;
	int r = memfs_enter_at(sys, MEMFS_FILE_ID, dirfd, name, &fs);

	if (r == 0)
		r = walk_to(fs, dirfd, name, WALK_NOFOLLOW, &node);
	if (r == 0)
		*id = (struct sys_file_id){ node->mnt->fs_id, node->ino, 0 };
	return memfs_leave(fs, r);
}

static int m_fstat(const struct sys *sys, int fd, struct sys_stat *st)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = memfs_enter_fd(sys, MEMFS_FSTAT, fd, &fs);

	if (r == 0)
		r = memfs_fd_get(fs, fd, &open);
	if (r == 0)
		fill_stat(open->node, st);
	return memfs_leave(fs, r);
}

static ssize_t do_readlink(struct memfs *fs, int dirfd, const char *path,
    char *buf, size_t size)
{
	struct inode *node;
	size_t len;
	int r;

	r = walk_parent(fs, dirfd, path);
	if (r < 0)
		return r;
	if (size == 0 || size > INT32_MAX)
		return -EINVAL;
	r = walk_to(fs, dirfd, path, WALK_NOFOLLOW, &node);
	if (r < 0)
		return r;
	if (!S_ISLNK(node->mode))
		return -EINVAL;
	len = strlen(node->target);
	len = len < size ? len : size;
	memcpy(buf, node->target, len);
	return (ssize_t)len;
}

static ssize_t m_readlinkat(const struct sys *sys, int dirfd, const char *path,
    char *buf, size_t size)
{
	struct memfs *fs;
	ssize_t r = memfs_enter_at(sys, MEMFS_READLINKAT, dirfd, path, &fs);

	if (r == 0)
		r = do_readlink(fs, dirfd, path, buf, size);
	return memfs_leave(fs, (int)r);
}

static int set_mode(struct memfs *fs, struct inode *node, mode_t mode)
{
	int r;

	r = memfs_change_begins(fs);
	if (r < 0)
		return r;
	change_mode(node, (node->mode & S_IFMT) | (mode & 07777));
	node->ctime = memfs_file_time(fs);
	return 0;
}

static int m_chmod_trusted(const struct sys *sys, const char *path, mode_t mode)
{
	struct memfs *fs;
	struct inode *node;
	int r = memfs_enter(sys, MEMFS_CHMOD_TRUSTED, path, &fs);

	if (r == 0)
		r = walk_to(fs, SYS_TRUSTED, path, WALK_FOLLOW, &node);
	if (r == 0)
		r = set_mode(fs, node, mode);
	return memfs_leave(fs, r);
}

static int m_fchmod(const struct sys *sys, int fd, mode_t mode)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = memfs_enter_fd(sys, MEMFS_FCHMOD, fd, &fs);

	if (r == 0)
		r = memfs_fd_get(fs, fd, &open);
	if (r == 0)
		r = open->flags & O_PATH ? -EBADF :
					   set_mode(fs, open->node, mode);
	return memfs_leave(fs, r);
}

void memfs_inodes_table(struct sys *sys)
{
	sys->fstat = m_fstat;
	sys->lstatat = m_lstatat;
	sys->file_id = m_file_id;
	sys->readlinkat = m_readlinkat;
	sys->fchmod = m_fchmod;
	sys->chmod_trusted = m_chmod_trusted;
}
