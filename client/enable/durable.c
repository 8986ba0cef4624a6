#include "client/enable/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int durable_sync_parent(const char *path)
{
	char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');
	int fd, err = 0;

	if (slash)
		slash[slash == dir] = '\0';
	fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	free(dir);
	return err;
}

int durable_sync_fs(const char *path)
{
	/* A member of the group may have put a FIFO there, so the open must not
	 * wait. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int err = 0;

	if (fd < 0 || syncfs(fd) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

int durable_put(int fd, const struct text *t)
{
	size_t at = 0;
	ssize_t n;

	while (at < t->len) {
		n = write(fd, t->data + at, t->len - at);
		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int put(const char *path, const struct text *t, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int err;

	if (fd < 0)
		return -errno;
	err = durable_put(fd, t);
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

int durable_write(const char *path, const struct text *t, mode_t mode)
{
	char *new = xasprintf("%s.new", path);
	int err;

	unlink(new);
	err = put(new, t, mode);
	if (!err && rename(new, path) < 0)
		err = -errno;
	if (err)
		unlink(new);
	free(new);
	return err ? err : durable_sync_parent(path);
}
