#include "daemon/store/refs/packed_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/refs/packed_internal.h"

int packed_file(const struct sys *sys, int dirfd, char name[REFD_PATH_MAX],
    struct sys_stat *st)
{
	ssize_t len;
	int r;

	strcpy(name, PACKED_FILE);
	r = SYS(sys, lstatat, dirfd, name, st);
	if (r < 0 || !S_ISLNK(st->mode))
		return r;
	len = SYS(sys, readlinkat, dirfd, PACKED_FILE, name, REFD_PATH_MAX);
	if (len < 0)
		return (int)len;
	if (len == REFD_PATH_MAX)
		return -ELOOP;
	name[len] = '\0';
	if (sys_path_check(name) < 0)
		return -ELOOP;
	r = SYS(sys, lstatat, dirfd, name, st);
	return r == 0 && S_ISLNK(st->mode) ? -ELOOP : r;
}
