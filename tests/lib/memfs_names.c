/*
 * The calls of struct sys that make or remove names. The order of the checks is
 * the kernel's (fs/namei.c), so the errors are the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

/* W's name gets the inode NEW, or is removed. */
static struct mem_half half_of(const struct where *w, struct inode *new)
{
	struct dentry *d = dir_find(w->dir, w->name, w->len);

	return (struct mem_half){ .dir = w->dir,
		.old = d != NULL ? d->node : NULL,
		.old_ctime = d != NULL ? d->node->ctime : 0,
		.new = new,
		.name = dentry_new(w->name, w->len) };
}

/* Nothing can be made in a removed directory. */
static bool is_removed(const struct inode *dir)
{
	return dir->links == 0;
}

/* For a new name: the errors of filename_create() and may_create(). */
static int walk_new(struct memfs *fs, int dirfd, const char *path, bool is_dir,
    struct where *w)
{
	int r;

	r = walk(fs, dirfd, path, WALK_PARENT, w);
	if (r < 0)
		return r;
	if (w->kind != WHERE_NAME || w->node != NULL)
		return -EEXIST;
	if (w->is_slashed && !is_dir)
		return -ENOENT;
	return is_removed(w->dir) ? -ENOENT : 0;
}

static int make(struct memfs *fs, const struct where *w, uint32_t mode,
    struct inode **made)
{
	struct memfs_mount *mnt = w->dir->mnt;
	struct inode *node;
	struct mem_half half;
	int r;

	if (mnt->has_inode_limit && mnt->inodes_left <= 0)
		return -ENOSPC;
	r = memfs_change_begins(fs);
	if (r < 0)
		return r;
	if (w->dir->mode & S_ISGID && S_ISDIR(mode))
		mode |= S_ISGID;
	node = inode_new(mnt, mode);
	if (w->dir->mode & S_ISGID)
		node->gid = w->dir->gid;
	half = half_of(w, node);
	change_names(w->dir, 1, &half);
	data_touch(w->dir);
	*made = node;
	return 0;
}

/* ---- open ---- */

static int may_open(const struct where *w, int flags)
{
	const struct inode *node = w->node;
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	if (node == NULL)
		return flags & O_CREAT && !is_removed(w->dir) ? 0 : -ENOENT;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (S_ISLNK(node->mode) && !(flags & O_PATH))
		return flags & O_DIRECTORY ? -ENOTDIR : -ELOOP;
	if (S_ISDIR(node->mode)) {
		if (flags & O_PATH)
			return 0;
		return flags & (O_CREAT | O_TRUNC) || writes ? -EISDIR : 0;
	}
	return flags & O_DIRECTORY || w->is_slashed ? -ENOTDIR : 0;
}

static enum walk_how how_to_open(int flags)
{
	bool is_nofollow = flags & O_NOFOLLOW || flags & O_EXCL;

	if (flags & O_CREAT)
		return is_nofollow ? WALK_PARENT : WALK_CREATE;
	return flags & O_NOFOLLOW ? WALK_NOFOLLOW : WALK_FOLLOW;
}

static int do_open(struct memfs *fs, int dirfd, const char *path, int flags,
    mode_t mode)
{
	struct where w;
	int r;

	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
	if (dirfd != SYS_TRUSTED)
		flags &= ~O_NOFOLLOW;
	if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY))
		return -EINVAL;
	if (!fs->cur->is_other && fs->nr_open >= fs->max_fds)
		return -EMFILE;
	r = walk(fs, dirfd, path, how_to_open(flags), &w);
	if (r < 0)
		return r;
	if (flags & O_CREAT && w.is_slashed && w.kind == WHERE_NAME)
		return -EISDIR;
	r = may_open(&w, flags);
	if (r < 0)
		return r;
	if (w.node == NULL) {
		r = make(fs, &w, S_IFREG | (mode & 07777), &w.node);
	} else if (w.node->mnt->dead != 0) {
		r = w.node->mnt->dead;
	} else if (flags & O_TRUNC) {
		r = memfs_change_begins(fs);
		if (r == 0)
			data_truncate(w.node, 0);
	}
	return r < 0 ? r : memfs_fd_new(fs, w.node, flags);
}

static int m_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	struct memfs *fs;
	int r = memfs_enter_at(sys, MEMFS_OPENAT, dirfd, path, &fs);

	if (r == 0)
		r = do_open(fs, dirfd, path, flags, mode);
	return memfs_leave(fs, r);
}

static int leads_below(struct memfs *fs, const char *top, int dirfd,
    const char *path)
{
	char there[4096];
	size_t len = strlen(top);
	struct where to;
	int r;

	r = walk_freely(fs, dirfd, path, &to);
	if (r == 0)
		r = may_open(&to, O_DIRECTORY);
	if (r == 0)
		r = inode_path(to.node, there, sizeof(there));
	if (r < 0)
		return r;
	if (strncmp(there, top, len) != 0 ||
	    (there[len] != '\0' && there[len] != '/'))
		return -EXDEV;
	return strcmp(there + len + 1, path) == 0 ? 0 : -ELOOP;
}

/* Step by step, so a component that leads out is found before a missing
 * component. */
static int stays_below(struct memfs *fs, int dirfd, const char *path)
{
	char top[4096], part[4096];
	struct where from;
	size_t len = 0;
	bool linked = false;
	int r;

	r = walk_freely(fs, dirfd, ".", &from);
	if (r == 0)
		r = inode_path(from.node, top, sizeof(top));
	while ((r == 0 || r == -ELOOP) && path[len] != '\0') {
		len += strspn(path + len, "/");
		len += strcspn(path + len, "/");
		memcpy(part, path, len);
		part[len] = '\0';
		r = leads_below(fs, top, dirfd, part);
		linked = linked || r == -ELOOP;
	}
	return linked && r != -EXDEV ? -ELOOP : r;
}

/* Checks the end of the path, and not the way. */
static int open_below(struct memfs *fs, int dirfd, const char *path,
    bool *is_plain)
{
	char top[4096], there[4096];
	struct where from, to;
	int r;

	r = walk_freely(fs, dirfd, ".", &from);
	if (r == 0)
		r = inode_path(from.node, top, sizeof(top));
	if (r == 0)
		r = walk_freely(fs, dirfd, path, &to);
	if (r == 0)
		r = may_open(&to, O_DIRECTORY);
	if (r == 0)
		r = inode_path(to.node, there, sizeof(there));
	if (r == 0 && strncmp(there, top, strlen(top)) != 0)
		r = -EXDEV;
	*is_plain = r == 0 && leads_below(fs, top, dirfd, path) == 0;
	if (r == 0 && !fs->cur->is_other && fs->nr_open >= fs->max_fds)
		r = -EMFILE;
	return r < 0 ? r : memfs_fd_new(fs, to.node, O_RDONLY | O_DIRECTORY);
}

static int m_open_below(const struct sys *sys, int dirfd, const char *path,
    bool *is_plain)
{
	struct memfs *fs;
	int r = memfs_enter_at(sys, MEMFS_OPENAT, dirfd, path, &fs);

	if (r == 0)
		r = open_below(fs, dirfd, path, is_plain);
	return memfs_leave(fs, r);
}

static int m_stays_below(const struct sys *sys, int dirfd, const char *path)
{
	struct memfs *fs;
	int r = memfs_enter_at(sys, MEMFS_STAYS_BELOW, dirfd, path, &fs);

	if (r == 0)
		r = stays_below(fs, dirfd, path);
	return memfs_leave(fs, r);
}

/* ---- making and removing ---- */

static int m_mkdirat(const struct sys *sys, int dirfd, const char *path,
    mode_t mode)
{
	struct memfs *fs;
	struct where w;
	struct inode *node;
	int r = memfs_enter_at(sys, MEMFS_MKDIRAT, dirfd, path, &fs);

	if (r == 0)
		r = walk_new(fs, dirfd, path, true, &w);
	if (r == 0)
		r = make(fs, &w, S_IFDIR | (mode & 01777), &node);
	return memfs_leave(fs, r);
}

static int do_link(struct memfs *fs, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	struct inode *node;
	struct where w;
	struct mem_half half;
	int r;

	r = walk_parent(fs, olddirfd, oldpath);
	if (r == 0)
		r = walk_parent(fs, newdirfd, newpath);
	if (r == 0)
		r = walk_to(fs, olddirfd, oldpath, WALK_NOFOLLOW, &node);
	if (r == 0)
		r = walk_new(fs, newdirfd, newpath, false, &w);
	if (r < 0)
		return r;
	if (node->mnt != w.dir->mnt)
		return -EXDEV;
	if (S_ISDIR(node->mode))
		return -EPERM;
	if (node->links >= MEMFS_LINK_MAX)
		return -EMLINK;
	r = memfs_change_begins(fs);
	if (r < 0)
		return r;
	half = half_of(&w, node);
	change_names(w.dir, 1, &half);
	node->ctime = memfs_file_time(fs);
	data_touch(w.dir);
	return 0;
}

static int m_linkat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	struct memfs *fs;
	int r = memfs_enter_at(sys, MEMFS_LINKAT, newdirfd, newpath, &fs);

	if (r == 0)
		r = do_link(fs, olddirfd, oldpath, newdirfd, newpath);
	return memfs_leave(fs, r);
}

static bool is_mount_point(const struct where *w)
{
	return w->node != NULL && w->node == w->node->mnt->root;
}

static int take_away(struct memfs *fs, const struct where *w)
{
	struct mem_half half;
	int r;

	r = memfs_change_begins(fs);
	if (r < 0)
		return r;
	half = half_of(w, NULL);
	w->node->ctime = memfs_file_time(fs);
	change_names(w->dir, 1, &half);
	data_touch(w->dir);
	return 0;
}

static int do_unlink(struct memfs *fs, int dirfd, const char *path)
{
	struct where w;
	int r;

	r = walk(fs, dirfd, path, WALK_PARENT, &w);
	if (r < 0)
		return r;
	if (w.kind != WHERE_NAME)
		return -EISDIR;
	if (w.node == NULL)
		return -ENOENT;
	if (S_ISDIR(w.node->mode))
		return -EISDIR;
	if (w.is_slashed)
		return -ENOTDIR;
	return take_away(fs, &w);
}

static int m_unlinkat(const struct sys *sys, int dirfd, const char *path)
{
	struct memfs *fs;
	int r = memfs_enter_at(sys, MEMFS_UNLINKAT, dirfd, path, &fs);

	if (r == 0)
		r = do_unlink(fs, dirfd, path);
	return memfs_leave(fs, r);
}

static int do_rmdir(struct memfs *fs, int dirfd, const char *path)
{
	struct where w;
	int r;

	r = walk(fs, dirfd, path, WALK_PARENT, &w);
	if (r < 0)
		return r;
	if (w.kind != WHERE_NAME)
		return w.kind == WHERE_DOT ? -EINVAL :
		    w.kind == WHERE_DOTDOT ? -ENOTEMPTY :
					     -EBUSY;
	if (w.node == NULL)
		return -ENOENT;
	if (!S_ISDIR(w.node->mode))
		return -ENOTDIR;
	if (is_mount_point(&w))
		return -EBUSY;
	if (w.node->nr_names > 0)
		return -ENOTEMPTY;
	return take_away(fs, &w);
}

static int m_rmdirat(const struct sys *sys, int dirfd, const char *path)
{
	struct memfs *fs;
	int r = memfs_enter_at(sys, MEMFS_RMDIRAT, dirfd, path, &fs);

	if (r == 0)
		r = do_rmdir(fs, dirfd, path);
	return memfs_leave(fs, r);
}

/* ---- rename ---- */

/* Is DIR at or below NODE? */
static bool is_below(const struct inode *dir, const struct inode *node)
{
	for (; dir != NULL; dir = dir->parent) {
		if (dir == node)
			return true;
	}
	return false;
}

static int may_rename(const struct where *from, const struct where *to)
{
	const struct inode *old = from->node, *over = to->node;

	if (from->dir->mnt != to->dir->mnt)
		return -EXDEV;
	if (old == NULL)
		return -ENOENT;
	if (!S_ISDIR(old->mode) && (from->is_slashed || to->is_slashed))
		return -ENOTDIR;
	if (is_below(to->dir, old))
		return -EINVAL;
	if (over != NULL && is_below(from->dir, over))
		return -ENOTEMPTY;
	if (over == NULL && is_removed(to->dir))
		return -ENOENT;
	if (over == old || over == NULL)
		return is_mount_point(from) ? -EBUSY : 0;
	if (S_ISDIR(old->mode) && !S_ISDIR(over->mode))
		return -ENOTDIR;
	if (!S_ISDIR(old->mode) && S_ISDIR(over->mode))
		return -EISDIR;
	if (is_mount_point(from) || is_mount_point(to))
		return -EBUSY;
	return over->nr_names > 0 ? -ENOTEMPTY : 0;
}

static int do_rename(struct memfs *fs, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	struct where from, to;
	struct mem_half half[2];
	int r;

	r = walk_parent(fs, olddirfd, oldpath);
	if (r == 0)
		r = walk_parent(fs, newdirfd, newpath);
	if (r == 0)
		r = walk(fs, olddirfd, oldpath, WALK_PARENT, &from);
	if (r == 0)
		r = walk(fs, newdirfd, newpath, WALK_PARENT, &to);
	if (r < 0)
		return r;
	if (from.kind != WHERE_NAME || to.kind != WHERE_NAME)
		return -EBUSY;
	r = may_rename(&from, &to);
	if (r < 0 || from.node == to.node)
		return r;
	r = memfs_change_begins(fs);
	if (r < 0)
		return r;
	half[0] = half_of(&to, from.node);
	half[1] = half_of(&from, NULL);
	from.node->ctime = memfs_file_time(fs);
	if (to.node != NULL)
		to.node->ctime = memfs_file_time(fs);
	change_names(to.dir, 2, half);
	data_touch(from.dir);
	data_touch(to.dir);
	return 0;
}

static int m_renameat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	struct memfs *fs;
	int r = memfs_enter_at(sys, MEMFS_RENAMEAT, newdirfd, newpath, &fs);

	if (r == 0)
		r = do_rename(fs, olddirfd, oldpath, newdirfd, newpath);
	return memfs_leave(fs, r);
}

void memfs_names_table(struct sys *sys)
{
	sys->openat = m_openat;
	sys->mkdirat = m_mkdirat;
	sys->open_below = m_open_below;
	sys->stays_below = m_stays_below;
	sys->linkat = m_linkat;
	sys->unlinkat = m_unlinkat;
	sys->rmdirat = m_rmdirat;
	sys->renameat = m_renameat;
}
