/*
 * Makes flushes dear: loaded into a program by LD_PRELOAD, it adds
 * REFD_FLUSH_DELAY_US microseconds (5000) to each fsync, fdatasync, syncfs and
 * sync_file_range, so that a disk whose flush costs nothing can stand for one
 * whose flush is real. The delay comes after the call, on the thread that
 * made it, as a slow disk's would.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *find(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	if (!next)
		abort();
	return next;
}

static int slowly(int result)
{
	const char *set = getenv("REFD_FLUSH_DELAY_US");
	long us = set ? strtol(set, NULL, 10) : 5000;
	struct timespec left = { us / 1000000, us % 1000000 * 1000 };
	int err = errno;

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
	errno = err;
	return result;
}

int fsync(int fd)
{
	int (*next)(int) = find("fsync");

	return slowly(next(fd));
}

int fdatasync(int fd)
{
	int (*next)(int) = find("fdatasync");

	return slowly(next(fd));
}

int syncfs(int fd)
{
	int (*next)(int) = find("syncfs");

	return slowly(next(fd));
}

int sync_file_range(int fd, off64_t offset, off64_t len, unsigned flags)
{
	int (*next)(int, off64_t, off64_t, unsigned) = find("sync_file_range");

	return slowly(next(fd, offset, len, flags));
}
