/*
 * Files below the git directory. The owner of the repository can put anything
 * there meanwhile: every directory is opened without following a link, and the
 * process has only the owner's rights.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/migrate/migrate_internal.h"

int files_open_dir(int dirfd, const char *name)
{
	int fd = openat(dirfd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int files_each(int fd, files_each_fn *fn, void *arg)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;

	if (!dir) {
		r = -errno;
		if (copy >= 0)
			close(copy);
		return r;
	}
	for (errno = 0; r == 0 && (d = readdir(dir)); errno = 0)
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			r = fn(arg, d->d_name);
	if (r == 0 && errno)
		r = -errno;
	closedir(dir);
	return r;
}

/* ---- removing ---- */

static int remove_entry(void *arg, const char *name)
{
	return files_remove(*(int *)arg, name);
}

int files_empty(int dirfd, const char *name)
{
	int fd = files_open_dir(dirfd, name), r;

	if (fd < 0)
		return fd;
	r = files_each(fd, remove_entry, &fd);
	close(fd);
	return r;
}

int files_remove(int dirfd, const char *name)
{
	struct stat st;
	int r;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dirfd, name, 0) < 0 ? -errno : 0;
	r = files_empty(dirfd, name);
	if (r == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

/* ---- moving and writing ---- */

struct move {
	int from, to;
};

static int move_entry(void *arg, const char *name)
{
	const struct move *m = arg;

	return renameat(m->from, name, m->to, name) < 0 ? -errno : 0;
}

int files_move_all(int from, int to)
{
	struct move m = { from, to };

	return files_each(from, move_entry, &m);
}

int files_read(int dirfd, const char *name, size_t max, struct text *t)
{
	int fd = openat(dirfd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	if (r == 0)
		r = text_read(t, fd, max);
	close(fd);
	return r;
}

int files_put(int work_fd, int dirfd, const char *name, const char *text)
{
	size_t len = strlen(text);
	int fd, r = 0;

	unlinkat(work_fd, "put", 0);
	fd = openat(work_fd, "put", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0666);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		r = -EIO;
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && renameat(work_fd, "put", dirfd, name) < 0)
		r = -errno;
	return r;
}

/* ---- changes by others ---- */

struct sum {
	int fd;
	const char *path;
	uint64_t *sum;
	char **lock;
};

static int sum_path(int dirfd, const char *name, const char *path,
    uint64_t *sum, char **lock);

static int sum_entry(void *arg, const char *name)
{
	const struct sum *s = arg;
	char *path = xasprintf("%s/%s", s->path, name);
	int r = sum_path(s->fd, name, path, s->sum, s->lock);

	free(path);
	return r;
}

/* FNV-1a */
static void mix(uint64_t *hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len-- > 0)
		*hash = (*hash ^ *p++) * UINT64_C(1099511628211);
}

static void add_stat(const struct stat *st, const char *path, uint64_t *sum)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	const int64_t all[] = { (int64_t)st->st_ino, (int64_t)st->st_size,
		(int64_t)st->st_mode, st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		st->st_ctim.tv_sec, st->st_ctim.tv_nsec };

	mix(&hash, path, strlen(path));
	mix(&hash, all, sizeof(all));
	/* The order of a directory does not count. */
	*sum += hash;
}

static bool is_lock(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && !strcmp(name + len - 5, ".lock");
}

static int sum_path(int dirfd, const char *name, const char *path,
    uint64_t *sum, char **lock)
{
	struct sum below = { .path = path, .sum = sum, .lock = lock };
	struct stat st;
	int r;

	/* A file that went meanwhile was in the directory, whose times differ
	 * next time. */
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	add_stat(&st, path, sum);
	if (is_lock(name) && !*lock)
		*lock = xstrdup(path);
	if (!S_ISDIR(st.st_mode))
		return 0;
	below.fd = files_open_dir(dirfd, name);
	if (below.fd < 0)
		return below.fd;
	r = files_each(below.fd, sum_entry, &below);
	close(below.fd);
	return r;
}

int files_sum(int dirfd, const char *name, uint64_t *sum, char **lock)
{
	return sum_path(dirfd, name, name, sum, lock);
}
