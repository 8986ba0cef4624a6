/*
 * Helpers that use only the table of system calls, so they work on any table.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/sys.h"
#include "proto/limits.h"

static bool is_dots(const char *name, size_t len)
{
	return name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'));
}

int sys_path_check(const char *path)
{
	size_t len;

	if (strcmp(path, ".") == 0)
		return 0;
	for (;; path += len + 1) {
		len = (size_t)(strchrnul(path, '/') - path);
		if (len == 0 || is_dots(path, len))
			return -EINVAL;
		if (path[len] == '\0')
			return 0;
	}
}

int sys_stat_trusted(const struct sys *sys, const char *path,
    struct sys_stat *st)
{
	int fd = SYS(sys, openat, SYS_TRUSTED, path, O_PATH, 0), r;

	if (fd < 0)
		return fd;
	r = SYS(sys, fstat, fd, st);
	SYS(sys, close, fd);
	return r;
}

/* Reads until end of file, not until the size from fstat, because the file may
 * have grown. */
static int read_rest(const struct sys *sys, int fd, size_t max, char **data,
    size_t *have, size_t room)
{
	char *grown;
	ssize_t n;

	for (;;) {
		n = SYS(sys, pread, fd, *data + *have, room - *have,
		    (off_t)*have);
		if (n <= 0)
			return (int)n;
		*have += (size_t)n;
		if (*have > max)
			return -EFBIG;
		if (*have < room)
			continue;
		room *= 2;
		grown = realloc(*data, room + 1);
		if (grown == NULL)
			return -ENOMEM;
		*data = grown;
	}
}

int sys_read_fd(const struct sys *sys, int fd, size_t max, char **buf,
    size_t *len)
{
	struct sys_stat st;
	char *data;
	size_t have = 0;
	int r;

	r = SYS(sys, fstat, fd, &st);
	if (r < 0)
		return r;
	if (!S_ISREG(st.mode))
		return S_ISDIR(st.mode) ? -EISDIR : -EINVAL;
	if (st.size > max)
		return -EFBIG;
	data = malloc((size_t)st.size + 2);
	if (data == NULL)
		return -ENOMEM;
	r = read_rest(sys, fd, max, &data, &have, (size_t)st.size + 1);
	if (r < 0) {
		free(data);
		return r;
	}
	data[have] = '\0';
	*buf = data;
	*len = have;
	return 0;
}

/* O_NONBLOCK, because a foreign FIFO must not hang the caller. */
int sys_read_file(const struct sys *sys, int dirfd, const char *path,
    size_t max, char **buf, size_t *len)
{
	int fd, r;

	fd = SYS(sys, openat, dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd;
	r = sys_read_fd(sys, fd, max, buf, len);
	SYS(sys, close, fd);
	return r;
}

/* mkdir(2) ignores the set-group-ID bit, so chmod sets it afterwards. */
static int make_dir(const struct sys *sys, int dirfd, const char *path,
    mode_t mode)
{
	int fd, r;

	r = SYS(sys, mkdirat, dirfd, path, mode & 0777);
	if (r < 0 || (mode & ~(mode_t)0777) == 0)
		return r;
	fd = SYS(sys, openat, dirfd, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	r = SYS(sys, fchmod, fd, mode);
	SYS(sys, close, fd);
	return r;
}

/* Mostly only the last directory is missing, so the search goes up until a
 * parent exists or can be made, and then down again. Another process may make
 * the same directories at the same time. */
int sys_make_parents(const struct sys *sys, int dirfd, const char *path,
    mode_t mode)
{
	char dir[REFD_PATH_MAX];
	struct sys_stat st;
	size_t len = strlen(path), end;
	int r = 0, missing = 0;
	char *slash;

	if (len >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, len + 1);
	end = len;
	for (;;) {
		slash = strrchr(dir, '/');
		if (slash == NULL || slash == dir)
			return r;
		*slash = '\0';
		if (end == len)
			end = (size_t)(slash - dir);
		r = make_dir(sys, dirfd, dir, mode);
		if (r != -ENOENT)
			break;
		missing++;
	}
	missing += r == 0 || missing > 0;
	while ((r == 0 || r == -EEXIST) && strlen(dir) < end) {
		dir[strlen(dir)] = '/';
		r = make_dir(sys, dirfd, dir, mode);
	}
	if (r == -EEXIST) {
		r = dirfd == SYS_TRUSTED ? sys_stat_trusted(sys, dir, &st) :
					   SYS(sys, lstatat, dirfd, dir, &st);
		if (r == 0 && S_ISLNK(st.mode))
			r = -ELOOP;
		else if (r == 0 && !S_ISDIR(st.mode))
			r = -ENOTDIR;
	}
	return r < 0 ? r : missing;
}
