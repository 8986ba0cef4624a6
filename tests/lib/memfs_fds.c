/*
 * The calls of struct sys that take a descriptor or a directory stream.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

static int enter_fd(const struct sys *sys, enum memfs_call call, int fd,
    struct memfs **fs, struct memfs_open **open)
{
	int r = memfs_enter_fd(sys, call, fd, fs);

	return r < 0 ? r : memfs_fd_get(*fs, fd, open);
}

static int m_close(const struct sys *sys, int fd)
{
	struct memfs *fs;
	int r = memfs_enter_fd(sys, MEMFS_CLOSE, fd, &fs), found;
	struct memfs_open *open;

	found = memfs_fd_get(fs, fd, &open);
	if (found != -EBADF)
		memfs_fd_drop(fs, (size_t)(fd - fs->first_fd));
	else if (r == 0)
		r = found;
	return memfs_leave(fs, r);
}

/* ---- data ---- */

static int may_read(const struct memfs_open *open)
{
	if (open->flags & O_PATH || (open->flags & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	return S_ISDIR(open->node->mode) ? -EISDIR : 0;
}

static int may_write(const struct memfs_open *open)
{
	if (open->flags & O_PATH || (open->flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	return 0;
}

static ssize_t m_pread(const struct sys *sys, int fd, void *buf, size_t len,
    off_t offset)
{
	struct memfs *fs;
	struct memfs_open *open;
	ssize_t r = enter_fd(sys, MEMFS_PREAD, fd, &fs, &open);

	if (r == 0 && offset < 0)
		r = -EINVAL;
	if (r == 0)
		r = may_read(open);
	if (r == 0)
		r = (ssize_t)(open->flags & O_DIRECT ?
			data_read_disk(open->node, buf, len, (size_t)offset) :
			data_read(open->node, buf, len, (size_t)offset));
	pthread_mutex_unlock(&fs->lock);
	return r;
}

static int write_here(struct memfs_open *open, const void *buf, size_t len)
{
	const char *p = buf;
	ssize_t n;

	while (len > 0) {
		if (open->flags & O_APPEND)
			open->pos = (off_t)open->node->now.len;
		n = data_write(open->node, p, len, (size_t)open->pos);
		if (n < 0)
			return (int)n;
		open->pos += n;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int m_write_all(const struct sys *sys, int fd, const void *buf,
    size_t len)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = enter_fd(sys, MEMFS_WRITE_ALL, fd, &fs, &open);

	if (fs->faulted_now && memfs_fd_get(fs, fd, &open) == 0 &&
	    may_write(open) == 0)
		write_here(open, buf, len / 2);
	if (r == 0 && len > 0)
		r = may_write(open);
	if (r == 0 && len > 0)
		r = memfs_change_begins(fs);
	if (r == 0)
		r = write_here(open, buf, len);
	return memfs_leave(fs, r);
}

static ssize_t m_pwrite(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	struct memfs *fs;
	struct memfs_open *open;
	ssize_t r = enter_fd(sys, MEMFS_PWRITE, fd, &fs, &open);

	if (r == 0 && offset < 0)
		r = -EINVAL;
	if (r == 0)
		r = may_write(open);
	if (r == 0 && len > 0)
		r = memfs_change_begins(fs);
	if (r == 0 && open->flags & O_APPEND) /* pwrite(2), BUGS */
		offset = (off_t)open->node->now.len;
	if (r == 0)
		r = data_write(open->node, buf, len, (size_t)offset);
	pthread_mutex_unlock(&fs->lock);
	return r;
}

static int m_ftruncate(const struct sys *sys, int fd, off_t size)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = enter_fd(sys, MEMFS_FTRUNCATE, fd, &fs, &open);

	if (r == 0 && size < 0)
		r = -EINVAL;
	if (r == 0 && open->flags & O_PATH)
		r = -EBADF;
	if (r == 0 && may_write(open) < 0)
		r = -EINVAL;
	if (r == 0 && (size_t)size > MEMFS_SIZE_MAX)
		r = -EFBIG;
	if (r == 0)
		r = memfs_change_begins(fs);
	if (r == 0)
		data_truncate(open->node, (size_t)size);
	return memfs_leave(fs, r);
}

static int m_futimens_now(const struct sys *sys, int fd)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = enter_fd(sys, MEMFS_FUTIMENS_NOW, fd, &fs, &open);

	if (r == 0 && open->flags & O_PATH)
		r = -EBADF;
	if (r == 0)
		r = memfs_change_begins(fs);
	if (r == 0)
		data_touch(open->node);
	return memfs_leave(fs, r);
}

/* ---- syncing ---- */

enum sync_what { SYNC_ALL_OF_FILE, SYNC_DATA, SYNC_MOUNT };

static void sync_works(struct memfs *fs, struct inode *node,
    enum sync_what what)
{
	struct memfs_mount *mnt = node->mnt;
	struct inode *dirty, *next;

	switch (what) {
	case SYNC_DATA:
		data_sync(node, false);
		return;
	case SYNC_MOUNT:
		for (dirty = TAILQ_FIRST(&mnt->dirty); dirty != NULL;
		    dirty = next) {
			next = TAILQ_NEXT(dirty, dirty_link);
			data_sync(dirty, true);
		}
		changes_mark_from(mnt, 0);
		break;
	case SYNC_ALL_OF_FILE:
		data_sync(node, true);
		if (fs->mode == MEMFS_ORDERED)
			changes_mark_from(mnt, 0);
		else
			changes_mark_home(mnt, node);
		break;
	}
	changes_last(mnt);
}

static void sync_fails(struct inode *node, enum sync_what what)
{
	struct inode *dirty;

	if (what != SYNC_MOUNT) {
		data_sync_fails(node);
		return;
	}
	TAILQ_FOREACH(dirty, &node->mnt->dirty, dirty_link) {
		data_sync_fails(dirty);
	}
}

/* As with errseq_t: every descriptor that was open during the failure gets the
 * error once, from its next sync. */
static int do_sync(struct memfs *fs, struct memfs_open *open,
    enum sync_what what)
{
	struct inode *node = open->node;
	int r;

	if (open->flags & O_PATH)
		return -EBADF;
	if (open->sync_failed && !fs->cur->is_other)
		fs->bad_syncs++;
	if (what != SYNC_MOUNT && open->errors_seen != node->sync_errors) {
		open->errors_seen = node->sync_errors;
		open->sync_failed = true;
		return -EIO;
	}
	r = memfs_change_begins(fs);
	if (r < 0)
		return r;
	sync_works(fs, node, what);
	return 0;
}

/* A fault, or a dead mount: nothing reaches the disk, but the pages are
 * clean. */
static void note_sync_failure(struct memfs *fs, int fd, enum sync_what what)
{
	size_t i = (size_t)(fd - fs->first_fd);
	struct memfs_open *open;

	if (fd < fs->first_fd || i >= fs->nr_fds || fs->fds[i] == NULL)
		return;
	open = fs->fds[i];
	if (open->proc != fs->cur || open->flags & O_PATH)
		return;
	if (open->sync_failed && !fs->cur->is_other)
		fs->bad_syncs++;
	sync_fails(open->node, what);
	open->errors_seen = open->node->sync_errors;
	open->sync_failed = true;
}

static int sync_call(const struct sys *sys, enum memfs_call call, int fd,
    enum sync_what what)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = enter_fd(sys, call, fd, &fs, &open);

	if (r == 0)
		r = do_sync(fs, open, what);
	else if (fs->power == POWER_ON && r != -EBADF)
		note_sync_failure(fs, fd, what);
	return memfs_leave(fs, r);
}

static int m_fsync(const struct sys *sys, int fd)
{
	return sync_call(sys, MEMFS_FSYNC, fd, SYNC_ALL_OF_FILE);
}

static int m_fdatasync(const struct sys *sys, int fd)
{
	return sync_call(sys, MEMFS_FDATASYNC, fd, SYNC_DATA);
}

static int m_syncfs(const struct sys *sys, int fd)
{
	return sync_call(sys, MEMFS_SYNCFS, fd, SYNC_MOUNT);
}

/* ---- the rest ---- */

static int m_mount_id(const struct sys *sys, int fd, uint64_t *id)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = enter_fd(sys, MEMFS_MOUNT_ID, fd, &fs, &open);

	if (r == 0)
		*id = open->node->mnt->mount_id;
	return memfs_leave(fs, r);
}

/* The most similar real file system. */
static int m_fs_type(const struct sys *sys, int fd, uint64_t *type)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = enter_fd(sys, MEMFS_FS_TYPE, fd, &fs, &open);

	if (r == 0)
		*type = XFS_SUPER_MAGIC;
	return memfs_leave(fs, r);
}

static int m_fd_path(const struct sys *sys, int fd, char *buf, size_t size)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = enter_fd(sys, MEMFS_FD_PATH, fd, &fs, &open);

	if (r == 0)
		r = inode_path(open->node, buf, size);
	return memfs_leave(fs, r);
}

static int m_flock_try(const struct sys *sys, int fd)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = enter_fd(sys, MEMFS_FLOCK_TRY, fd, &fs, &open);

	if (r == 0 && open->flags & O_PATH)
		r = -EBADF;
	if (r == 0 && open->node->locker != NULL && open->node->locker != open)
		r = -EAGAIN;
	if (r == 0)
		open->node->locker = open;
	return memfs_leave(fs, r);
}

/* ---- directory streams ---- */

static unsigned char type_of(const struct memfs *fs, const struct inode *node)
{
	if (fs->hides_types)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(node->mode);
}

static struct sys_dir *list(struct memfs *fs, struct inode *node)
{
	struct sys_dir *dir = memfs_grow(NULL, NULL, 1, sizeof(*dir));
	const struct dentry *d;
	size_t i;

	dir->names =
	    memfs_grow(NULL, NULL, node->nr_names, sizeof(*dir->names));
	for (i = 0; i < node->nr_slots; i++) {
		for (d = node->slots[i]; d != NULL; d = d->next) {
			dir->names[dir->nr++] = (struct dir_name){
				.name = strdup(d->name),
				.ino = d->node->ino,
				.type = type_of(fs, d->node),
			};
		}
	}
	dir->proc = fs->cur;
	dir->node = node;
	node->opens++;
	inode_get(node);
	if (!fs->cur->is_other)
		fs->nr_open++;
	TAILQ_INSERT_TAIL(&fs->dirs, dir, link);
	return dir;
}

static int do_dir_open(struct memfs *fs, int dirfd, const char *path,
    struct sys_dir **dir)
{
	struct inode *node;
	int r;

	if (!fs->cur->is_other && fs->nr_open >= fs->max_fds)
		return -EMFILE;
	r = walk_to(fs, dirfd, path, WALK_FOLLOW, &node);
	if (r < 0)
		return r;
	if (!S_ISDIR(node->mode))
		return -ENOTDIR;
	*dir = list(fs, node);
	return 0;
}

static int m_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	struct memfs *fs;
	int r = memfs_enter_at(sys, MEMFS_DIR_OPEN, dirfd, path, &fs);

	if (r == 0)
		r = do_dir_open(fs, dirfd, path, dir);
	return memfs_leave(fs, r);
}

static int m_dir_next(const struct sys *sys, struct sys_dir *dir,
    struct sys_dirent *entry)
{
	struct memfs *fs;
	int r = memfs_enter(sys, MEMFS_DIR_NEXT, "", &fs);

	if (r == 0 && dir->node == NULL)
		r = -EIO;
	if (r == 0)
		r = dir->node->mnt->dead;
	if (r == 0 && dir->pos < dir->nr) {
		entry->name = dir->names[dir->pos].name;
		entry->ino = dir->names[dir->pos].ino;
		entry->type = dir->names[dir->pos].type;
		dir->pos++;
		r = 1;
	}
	return memfs_leave(fs, r);
}

void memfs_dir_strand(struct memfs *fs, struct sys_dir *dir)
{
	if (!dir->proc->is_other)
		fs->nr_open--;
	dir->node->opens--;
	inode_settle(dir->node);
	inode_put(dir->node);
	dir->node = NULL;
}

void memfs_dir_free(struct memfs *fs, struct sys_dir *dir)
{
	size_t i;

	if (dir->node != NULL)
		memfs_dir_strand(fs, dir);
	for (i = 0; i < dir->nr; i++)
		free(dir->names[i].name);
	free(dir->names);
	TAILQ_REMOVE(&fs->dirs, dir, link);
	free(dir);
}

static void m_dir_close(const struct sys *sys, struct sys_dir *dir)
{
	struct memfs *fs = ((struct memfs_proc *)sys->ctx)->fs;

	if (dir == NULL)
		return;
	pthread_mutex_lock(&fs->lock);
	memfs_dir_free(fs, dir);
	pthread_mutex_unlock(&fs->lock);
}

void memfs_fds_table(struct sys *sys)
{
	sys->close = m_close;
	sys->pread = m_pread;
	sys->write_all = m_write_all;
	sys->pwrite = m_pwrite;
	sys->ftruncate = m_ftruncate;
	sys->futimens_now = m_futimens_now;
	sys->fsync = m_fsync;
	sys->fdatasync = m_fdatasync;
	sys->syncfs = m_syncfs;
	memfs_out_table(sys);
	sys->mount_id = m_mount_id;
	sys->fs_type = m_fs_type;
	sys->fd_path = m_fd_path;
	sys->flock_try = m_flock_try;
	sys->dir_open = m_dir_open;
	sys->dir_next = m_dir_next;
	sys->dir_close = m_dir_close;
}
