/*
 * For valgrind, whose kernel knows no openat2(2): loaded into the daemon by
 * LD_PRELOAD, it does openat(2) instead, without what openat2 would refuse. For
 * counting instructions in repositories of one's own, and nothing else.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_ARGS 6

long syscall(long nr, ...)
{
	long (*next)(long, ...) =
	    (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	const struct open_how *how;
	long arg[NR_ARGS];
	va_list args;
	int i;

	va_start(args, nr);
	for (i = 0; i < NR_ARGS; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (!next)
		abort();
	if (nr != SYS_openat2)
		return next(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	how = (const struct open_how *)(uintptr_t)arg[2];
	return openat((int)arg[0], (const char *)(uintptr_t)arg[1],
	    (int)how->flags, (mode_t)how->mode);
}
