#include "client/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int sync_one(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0)
		err = -errno;
	close(fd);
	return err;
}

int durable_sync_parent(const char *path)
{
	char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');
	int err;

	if (slash)
		slash[slash == dir] = '\0';
	err = sync_one(slash ? dir : ".");
	free(dir);
	return err;
}

int durable_sync(const char *path)
{
	int err = sync_one(path);

	return err ? err : durable_sync_parent(path);
}

static int write_and_sync(int fd, const struct text *t)
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

/* NEW becomes PATH. */
static int put(const char *path, const char *new, const struct text *t,
    mode_t mode, bool exactly)
{
	int fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    exactly ? 0600 : mode);
	int err;

	if (fd < 0)
		return -errno;
	err = exactly && fchmod(fd, mode) < 0 ? -errno : write_and_sync(fd, t);
	if (close(fd) < 0 && !err)
		err = -errno;
	if (!err && rename(new, path) < 0)
		err = -errno;
	if (err)
		unlink(new);
	return err ? err : durable_sync_parent(path);
}

int durable_write(const char *path, const struct text *t, mode_t mode)
{
	char *new = xasprintf("%s.new", path);
	int err;

	unlink(new);
	err = put(path, new, t, mode, false);
	free(new);
	return err;
}

int durable_replace(const char *path, const struct text *t, mode_t mode)
{
	char *lock = xasprintf("%s.lock", path);
	int err = put(path, lock, t, mode, true);

	free(lock);
	return err;
}
