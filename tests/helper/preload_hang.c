/*
 * Makes a repository hang, loaded into a program by LD_PRELOAD. While a file
 * REFD_OPEN_HANGS exists and names the beginning of the opened path, no call
 * that opens a file returns. Calls on the program's first thread are left
 * alone: the first thread must not read a repository, and opens only files of
 * the program.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NR_ARGS 6

static void *find(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	if (!next)
		abort();
	return next;
}

static long kernel(long nr, long a, long b, long c, long d)
{
	static long (*next)(long, ...);

	if (!next)
		next = (long (*)(long, ...))find("syscall");
	return next(nr, a, b, c, d);
}

static int hangs_now(int fd)
{
	const char *hangs = getenv("REFD_OPEN_HANGS");
	char link[64], path[4096], prefix[4096];
	ssize_t len, prefix_len;
	int hangs_fd;

	if (!hangs || gettid() == getpid())
		return 0;
	hangs_fd = (int)kernel(SYS_openat, AT_FDCWD, (long)(intptr_t)hangs,
	    O_RDONLY | O_CLOEXEC, 0);
	if (hangs_fd < 0)
		return 0;
	prefix_len = read(hangs_fd, prefix, sizeof(prefix));
	close(hangs_fd);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path));
	return prefix_len > 0 && len >= prefix_len &&
	    !memcmp(path, prefix, (size_t)prefix_len);
}

static int slowly(long fd)
{
	struct timespec nap = { 0, 10 * 1000 * 1000 };
	int err = errno;

	while (fd >= 0 && hangs_now((int)fd))
		nanosleep(&nap, NULL);
	errno = err;
	return (int)fd;
}

long syscall(long nr, ...)
{
	static long (*next)(long, ...);
	long arg[NR_ARGS], r;
	va_list args;
	int i;

	if (!next)
		next = (long (*)(long, ...))find("syscall");
	va_start(args, nr);
	for (i = 0; i < NR_ARGS; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	r = next(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	return nr == SYS_openat2 ? slowly(r) : r;
}

#define MODE(flags, args)                                                      \
	((flags) & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0)

int openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = MODE(flags, args);
	va_end(args);
	return slowly(
	    kernel(SYS_openat, dirfd, (long)(intptr_t)path, flags, (long)mode));
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = MODE(flags, args);
	va_end(args);
	return slowly(kernel(SYS_openat, AT_FDCWD, (long)(intptr_t)path, flags,
	    (long)mode));
}

int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
int open64(const char *, int, ...) __attribute__((alias("open")));
