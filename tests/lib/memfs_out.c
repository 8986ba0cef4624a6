/*
 * The calls of struct sys that write data out without a flush, and the calls
 * for the page cache.
 */
#include <errno.h>
#include <fcntl.h>

#include "tests/lib/memfs_internal.h"

/* After the write-out, only the drive's cache could lose the data. The drive
 * flushes this cache before any name becomes durable. */
static int write_out(const struct sys *sys, enum memfs_call call, int fd)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = memfs_enter_fd(sys, call, fd, &fs);

	if (r == 0)
		r = memfs_fd_get(fs, fd, &open);
	if (r == 0 && call == MEMFS_WRITE_OUT_WAIT)
		r = memfs_change_begins(fs);
	if (r == 0 && call == MEMFS_WRITE_OUT_WAIT && fs->mode == MEMFS_ORDERED)
		data_sync(open->node, false);
	return memfs_leave(fs, r);
}

static int m_write_out_begin(const struct sys *sys, int fd)
{
	return write_out(sys, MEMFS_WRITE_OUT_BEGIN, fd);
}

static int m_write_out_wait(const struct sys *sys, int fd)
{
	return write_out(sys, MEMFS_WRITE_OUT_WAIT, fd);
}

/* ---- the page cache ---- */

static int on_cache(const struct sys *sys, enum memfs_call call, int fd)
{
	struct memfs *fs;
	struct memfs_open *open;
	int r = memfs_enter_fd(sys, call, fd, &fs);

	if (r == 0)
		r = memfs_fd_get(fs, fd, &open);
	if (r == 0 && open->flags & O_PATH)
		r = -EBADF;
	if (r == 0 && call == MEMFS_CACHE_HOLDS)
		r = open->node->is_mapped || open->node->data_dirty;
	else if (r == 0 && !open->node->is_mapped)
		data_drop_clean(open->node);
	return memfs_leave(fs, r);
}

static int m_drop_cache(const struct sys *sys, int fd)
{
	return on_cache(sys, MEMFS_DROP_CACHE, fd);
}

static int m_cache_holds(const struct sys *sys, int fd)
{
	return on_cache(sys, MEMFS_CACHE_HOLDS, fd);
}

static int m_fsync_covers_all(const struct sys *sys, int fd)
{
	(void)fd;
	return ((struct memfs_proc *)sys->ctx)->fs->mode == MEMFS_ORDERED;
}

void memfs_out_table(struct sys *sys)
{
	sys->write_out_begin = m_write_out_begin;
	sys->write_out_wait = m_write_out_wait;
	sys->fsync_covers_all = m_fsync_covers_all;
	sys->drop_cache = m_drop_cache;
	sys->cache_holds = m_cache_holds;
}
