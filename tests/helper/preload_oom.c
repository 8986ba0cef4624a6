/*
 * Memory that is not to be had: loaded into refd by LD_PRELOAD, it has the
 * REFD_OOM_AT-th allocation of the program fail, and makes the file
 * REFD_OOM_HIT to say that there was one; as a hook too. Programs of other names, git on the
 * way, have all they want.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own, which dlsym() would allocate to find. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *old, size_t size);

static long left; /* 0: none fails */

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("REFD_OOM_AT");

	if (at &&
	    (strcmp(program_invocation_short_name, "refd") == 0 ||
		strcmp(program_invocation_short_name, "proc-receive") == 0))
		left = atol(at);
}

static bool fails(void)
{
	const char *path;
	int fd;

	if (left == 0 || --left > 0)
		return false;
	path = getenv("REFD_OOM_HIT");
	fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd >= 0)
		close(fd);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __libc_calloc(nr, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}
