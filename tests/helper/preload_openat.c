/*
 * For valgrind, loaded into the daemon by LD_PRELOAD. valgrind does not know
 * openat2(2), so openat(2) replaces openat2, without the additional checks.
 * There is no filter of system calls, because a filter would stop valgrind's
 * own calls. Only for counting instructions in the test's own repositories.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_ARGS 6

static long (*next_syscall)(long, ...);

/* Only once: the instructions of a dlsym() per call would be counted. */
static void __attribute__((constructor)) find_syscall(void)
{
	next_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (!next_syscall)
		abort();
}

long syscall(long nr, ...)
{
	const struct open_how *how;
	long arg[NR_ARGS];
	va_list args;
	int i;

	va_start(args, nr);
	for (i = 0; i < NR_ARGS; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (nr != SYS_openat2)
		return next_syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4],
		    arg[5]);
	how = (const struct open_how *)(uintptr_t)arg[2];
	return openat((int)arg[0], (const char *)(uintptr_t)arg[1],
	    (int)how->flags, (mode_t)how->mode);
}

int prctl(int option, ...)
{
	int (*next)(int, ...) = (int (*)(int, ...))dlsym(RTLD_NEXT, "prctl");
	unsigned long arg[4];
	va_list args;
	int i;

	va_start(args, option);
	for (i = 0; i < 4; i++)
		arg[i] = va_arg(args, unsigned long);
	va_end(args);
	if (!next)
		abort();
	if (option != PR_SET_SECCOMP)
		return next(option, arg[0], arg[1], arg[2], arg[3]);
	errno = EINVAL;
	return -1;
}
