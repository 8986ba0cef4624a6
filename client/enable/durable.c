#include "client/enable/durable.h"

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

static int put(const char *path, const struct text *t, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int err;

	if (fd < 0)
		return -errno;
	err = write_and_sync(fd, t);
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

int durable_replace(const char *path, const char *stage, const struct text *t,
    mode_t mode)
{
	char *lock = xasprintf("%s.lock", path);
	int err;

	durable_unlock(path, stage);
	err = put(stage, t, 0600);
	if (!err && (chmod(stage, mode) < 0 || link(stage, lock) < 0))
		err = -errno;
	else if (!err && rename(lock, path) < 0)
		err = -errno;
	durable_unlock(path, stage);
	free(lock);
	return err ? err : durable_sync_parent(path);
}

void durable_unlock(const char *path, const char *stage)
{
	char *lock = xasprintf("%s.lock", path);
	struct stat ours, found;

	if (stat(stage, &ours) == 0) {
		if (stat(lock, &found) == 0 && found.st_dev == ours.st_dev &&
		    found.st_ino == ours.st_ino)
			unlink(lock);
		unlink(stage);
	}
	free(lock);
}
