/*
 * What of a file is in memory. To drop it is only asked for: pages that
 * somebody has mapped stay (seen on ext4, XFS and btrfs), so does what is
 * dirty. To look (mincore(2)) takes a mapping, whose pages are never touched.
 *
 * What fails: who neither owns the file nor may write it is told, since Linux
 * 5.2, that all of it is in memory.
 */
#include "daemon/base/sys_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGES 16384 /* looked at in one go */

int sys_cache_drop(const struct sys *sys, int fd)
{
	(void)sys;
	return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* 1: one of the pages of LEN bytes at AT is there. */
static int look(int fd, off_t at, size_t len, size_t page)
{
	unsigned char there[PAGES];
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

int sys_cache_holds(const struct sys *sys, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), step = page * PAGES;
	struct stat st;
	off_t at;
	int r = 0;

	(void)sys;
	if (fstat(fd, &st) < 0)
		return -errno;
	for (at = 0; r == 0 && at < st.st_size; at += (off_t)step)
		r = look(fd, at,
		    (size_t)(st.st_size - at) < step ?
			(size_t)(st.st_size - at) :
			step,
		    page);
	return r;
}
