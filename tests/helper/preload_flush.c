/*
 * Makes flushes expensive, loaded by LD_PRELOAD: adds REFD_FLUSH_DELAY_US
 * microseconds (5000) to fsync, fdatasync, syncfs, and a sync_file_range that
 * waits. A disk with free flushes can then replace a disk with real flushes. As
 * on a slow disk, the delay comes after the call, on the calling thread. 0 adds
 * nothing.
 *
 * While the file REFD_FLUSH_HANGS exists, no flush returns. If the file names a
 * directory, only flushes of files in this directory hang.
 *
 * The file REFD_FLUSH_COUNT begins with a 64-bit number: the count of calls in
 * all threads of all processes with this library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void *find(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	if (!next)
		abort();
	return next;
}

static uint64_t *count;

/* By default, a wait ends up to 50 us late. All programs wait equally long. */
__attribute__((constructor)) static void wait_exactly(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
}

__attribute__((constructor)) static void open_count(void)
{
	const char *path = getenv("REFD_FLUSH_COUNT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	    0);
	close(fd);
	if (at != MAP_FAILED)
		count = at;
}

static int hangs_now(int fd)
{
	const char *hangs = getenv("REFD_FLUSH_HANGS");
	char link[64], path[4096], dir[4096];
	int hangs_fd = hangs ? open(hangs, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t len, dir_len;

	if (hangs_fd < 0)
		return 0;
	dir_len = read(hangs_fd, dir, sizeof(dir));
	close(hangs_fd);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path));
	return dir_len <= 0 ||
	    (len >= dir_len && !memcmp(path, dir, (size_t)dir_len));
}

static int slowly(int fd, int result)
{
	const char *set = getenv("REFD_FLUSH_DELAY_US");
	long us = set ? strtol(set, NULL, 10) : 5000;
	struct timespec until, look_again = { 0, 10 * 1000 * 1000 };
	int err = errno;

	if (count)
		__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	while (hangs_now(fd))
		nanosleep(&look_again, NULL);
	/* A relative sleep would become longer with every signal that
	 * interrupts it. */
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += us / 1000000;
	until.tv_nsec += us % 1000000 * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (us &&
	    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
		EINTR)
		;
	errno = err;
	return result;
}

int fsync(int fd)
{
	int (*next)(int) = find("fsync");

	return slowly(fd, next(fd));
}

int fdatasync(int fd)
{
	int (*next)(int) = find("fdatasync");

	return slowly(fd, next(fd));
}

int syncfs(int fd)
{
	int (*next)(int) = find("syncfs");

	return slowly(fd, next(fd));
}

int sync_file_range(int fd, off64_t offset, off64_t len, unsigned flags)
{
	int (*next)(int, off64_t, off64_t, unsigned) = find("sync_file_range");
	int r = next(fd, offset, len, flags);

	/* Begins to write, and returns at once. */
	if (flags == SYNC_FILE_RANGE_WRITE)
		return r;
	return slowly(fd, r);
}
