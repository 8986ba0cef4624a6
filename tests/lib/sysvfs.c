/*
 * The VFS: open, delete, and the methods of a file. Locks and shared memory are
 * in sysvfs_shm.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/sysvfs_internal.h"

#define PATH_MAX_BYTES 1024

static struct sysvfs *vfs_of(sqlite3_vfs *base)
{
	return base->pAppData;
}

/* ---- one file ---- */

static int file_close(sqlite3_file *base)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;

	sysvfs_shm_unmap(base, 0);
	sysvfs_unlock(base, SQLITE_LOCK_NONE);
	if (f->node != NULL)
		sysvfs_node_put(f->node);
	SYS(f->vfs->sys, close, f->fd);
	free(f->path);
	return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *buf, int len,
    sqlite3_int64 offset)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;
	size_t got = 0, want = (size_t)len;
	ssize_t n = 1;

	while (got < want && n > 0) {
		n = SYS(f->vfs->sys, pread, f->fd, (char *)buf + got,
		    want - got, offset + (off_t)got);
		if (n < 0)
			return SQLITE_IOERR_READ;
		got += (size_t)n;
	}
	memset((char *)buf + got, 0, want - got);
	return got < want ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int file_write(sqlite3_file *base, const void *buf, int len,
    sqlite3_int64 offset)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;
	const char *p = buf;
	ssize_t n;

	while (len > 0) {
		n = SYS(f->vfs->sys, pwrite, f->fd, p, (size_t)len, offset);
		if (n == -ENOSPC || n == 0)
			return SQLITE_FULL;
		if (n < 0)
			return SQLITE_IOERR_WRITE;
		p += n;
		offset += n;
		len -= (int)n;
	}
	return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;

	return SYS(f->vfs->sys, ftruncate, f->fd, size) == 0 ?
	    SQLITE_OK :
	    SQLITE_IOERR_TRUNCATE;
}

static void sync_parent(struct sysvfs *vfs, const char *path)
{
	char dir[PATH_MAX_BYTES];
	char *slash;
	int fd;

	strcpy(dir, path);
	slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	fd = SYS(vfs->sys, openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return;
	SYS(vfs->sys, fsync, fd);
	SYS(vfs->sys, close, fd);
}

static int file_sync(sqlite3_file *base, int flags)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;

	(void)flags;
	if (f->type == SQLITE_OPEN_MAIN_DB)
		atomic_fetch_add(&f->vfs->db_syncs, 1);
	if (f->type == SQLITE_OPEN_WAL)
		atomic_fetch_add(&f->vfs->wal_syncs, 1);
	if (SYS(f->vfs->sys, fdatasync, f->fd) != 0)
		return SQLITE_IOERR_FSYNC;
	if (f->is_new) {
		sync_parent(f->vfs, f->path);
		f->is_new = false;
	}
	return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;
	struct sys_stat st;

	if (SYS(f->vfs->sys, fstat, f->fd, &st) != 0)
		return SQLITE_IOERR_FSTAT;
	*size = (sqlite3_int64)st.size;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
	(void)base;
	(void)op;
	(void)arg;
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *base)
{
	(void)base;
	return 4096;
}

/* As in SQLite's own VFS on Linux: a write does not change neighbouring
 * bytes. */
static int file_traits(sqlite3_file *base)
{
	(void)base;
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = sysvfs_lock,
	.xUnlock = sysvfs_unlock,
	.xCheckReservedLock = sysvfs_check_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
	.xShmMap = sysvfs_shm_map,
	.xShmLock = sysvfs_shm_lock,
	.xShmBarrier = sysvfs_shm_barrier,
	.xShmUnmap = sysvfs_shm_unmap,
};

/* ---- the file system ---- */

static int vfs_open(sqlite3_vfs *base, const char *path, sqlite3_file *file,
    int flags, int *out_flags)
{
	struct sysvfs *vfs = vfs_of(base);
	struct sysvfs_file *f = (struct sysvfs_file *)file;
	int fd, how = flags & SQLITE_OPEN_READWRITE ? O_RDWR : O_RDONLY;

	memset(f, 0, sizeof(*f));
	if (path == NULL || strlen(path) >= PATH_MAX_BYTES)
		return SQLITE_CANTOPEN;
	if (flags & SQLITE_OPEN_CREATE)
		how |= O_CREAT;
	if (flags & SQLITE_OPEN_EXCLUSIVE)
		how |= O_EXCL;
	fd = SYS(vfs->sys, openat, AT_FDCWD, path, how, 0600);
	if (fd < 0)
		return SQLITE_CANTOPEN;
	f->vfs = vfs;
	f->fd = fd;
	f->path = strdup(path);
	f->type = flags &
	    (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL);
	f->is_new =
	    (flags & SQLITE_OPEN_CREATE) && f->type != SQLITE_OPEN_MAIN_DB;
	if (f->type == SQLITE_OPEN_MAIN_DB && f->path != NULL)
		f->node = sysvfs_node_get(vfs, path);
	if (f->path == NULL ||
	    (f->type == SQLITE_OPEN_MAIN_DB && f->node == NULL)) {
		free(f->path);
		SYS(vfs->sys, close, fd);
		return SQLITE_NOMEM;
	}
	f->base.pMethods = &methods;
	if (out_flags != NULL)
		*out_flags = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *base, const char *path, int sync_dir)
{
	struct sysvfs *vfs = vfs_of(base);
	int r;

	r = SYS(vfs->sys, unlinkat, AT_FDCWD, path);
	if (r == -ENOENT)
		return SQLITE_IOERR_DELETE_NOENT;
	if (r < 0)
		return SQLITE_IOERR_DELETE;
	if (sync_dir)
		sync_parent(vfs, path);
	return SQLITE_OK;
}

/* An empty file counts as absent, as in SQLite's own VFS. */
static int vfs_access(sqlite3_vfs *base, const char *path, int flags,
    int *result)
{
	struct sys_stat st;
	int r = SYS(vfs_of(base)->sys, lstatat, AT_FDCWD, path, &st);

	*result = r == 0 && (flags != SQLITE_ACCESS_EXISTS || st.size > 0);
	return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *base, const char *path, int size,
    char *out)
{
	(void)base;
	if (path[0] != '/' || strlen(path) >= (size_t)size)
		return SQLITE_CANTOPEN;
	strcpy(out, path);
	return SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *base, int len, char *buf)
{
	struct sysvfs *vfs = vfs_of(base);

	return vfs->os->xRandomness(vfs->os, len, buf);
}

static int vfs_sleep(sqlite3_vfs *base, int us)
{
	SYS(vfs_of(base)->sys, sleep_ns, (int64_t)us * 1000);
	return us;
}

/* Milliseconds since noon in Greenwich on November 24, 4714 B.C. */
static int vfs_time(sqlite3_vfs *base, sqlite3_int64 *ms)
{
	*ms = SYS(vfs_of(base)->sys, now_wall) / 1000000 + 210866760000000LL;
	return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *base, int len, char *text)
{
	(void)base;
	if (len > 0)
		text[0] = '\0';
	return 0;
}

struct sysvfs *sysvfs_new(const char *name, const struct sys *sys)
{
	struct sysvfs *vfs = calloc(1, sizeof(*vfs));

	if (vfs == NULL)
		return NULL;
	vfs->sys = sys;
	vfs->os = sqlite3_vfs_find(NULL);
	vfs->base = (sqlite3_vfs){
		.iVersion = 2,
		.szOsFile = sizeof(struct sysvfs_file),
		.mxPathname = PATH_MAX_BYTES,
		.zName = name,
		.pAppData = vfs,
		.xOpen = vfs_open,
		.xDelete = vfs_delete,
		.xAccess = vfs_access,
		.xFullPathname = vfs_full_path,
		.xRandomness = vfs_randomness,
		.xSleep = vfs_sleep,
		.xCurrentTimeInt64 = vfs_time,
		.xGetLastError = vfs_last_error,
	};
	sqlite3_vfs_register(&vfs->base, 0);
	return vfs;
}

void sysvfs_free(struct sysvfs *vfs)
{
	if (vfs == NULL)
		return;
	sqlite3_vfs_unregister(&vfs->base);
	free(vfs);
}

unsigned long sysvfs_db_syncs(struct sysvfs *vfs)
{
	return atomic_load(&vfs->db_syncs);
}

unsigned long sysvfs_wal_syncs(struct sysvfs *vfs)
{
	return atomic_load(&vfs->wal_syncs);
}
