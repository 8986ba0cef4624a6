/*
 * Lack of memory, loaded into refd by LD_PRELOAD: the REFD_OOM_AT-th allocation
 * of the program fails, and the file REFD_OOM_HIT is made as a sign. This also
 * works in a hook. Programs with other names, such as git, are not affected.
 *
 * Allocations in the look-up of an account succeed, because glibc itself ends
 * the program there (an assertion in nss_database.c), or crashes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own functions, because dlsym() allocates memory. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *old, size_t size);

static long left; /* 0: none */
static bool is_looking_up;

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

	if (is_looking_up || left == 0 || --left > 0)
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

struct passwd *getpwuid(uid_t uid)
{
	struct passwd *(*real)(uid_t);
	struct passwd *pw;

	is_looking_up = true;
	*(void **)&real = dlsym(RTLD_NEXT, "getpwuid");
	pw = real(uid);
	is_looking_up = false;
	return pw;
}
