/*
 * Finds out which pages of a file are in memory, and drops them. A drop is only
 * a request: mapped pages stay (seen on ext4, XFS and btrfs), and dirty pages
 * stay. A look (mincore(2)) needs a mapping, but never touches its pages.
 *
 * What fails: since Linux 5.2, a process that does not own the file and may not
 * write it is told that all pages are in memory.
 */
#include "daemon/base/sys_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGES 16384 /* pages per look */

int sys_cache_drop(const struct sys *sys, int fd)
{
	(void)sys;
	return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* 1: at least one page of LEN bytes at AT is in memory. */
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
