#include "client/base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_MAX  (1 << 20)
#define AT_ONCE   (1 << 30)
#define AGAIN_MAX 100

static char *path_of(int dirfd, const char *name)
{
	char *link = xasprintf("/proc/self/fd/%d", dirfd), dir[4096];
	ssize_t n = readlink(link, dir, sizeof(dir));

	free(link);
	return n < 0 ? xstrdup(name) : xasprintf("%.*s/%s", (int)n, dir, name);
}

void tree_check(int r, const char *what, int dirfd, const char *name)
{
	int err = errno;

	if (r < 0)
		die("cannot %s %s: %s", what, path_of(dirfd, name),
		    strerror(err));
}

/* The open of a FIFO must not wait. -1 if NAME is missing. */
static int try_open(int dirfd, const char *name, int flags)
{
	int fd = openat(dirfd, name,
	    flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);

	tree_check(fd < 0 && errno == ENOENT ? 0 : fd, "open", dirfd, name);
	return fd;
}

static int open_file(int dirfd, const char *name, int flags)
{
	int fd = try_open(dirfd, name, flags);

	tree_check(fd, "open", dirfd, name);
	return fd;
}

int tree_open(int dirfd, const char *name)
{
	return open_file(dirfd, name, O_RDONLY | O_DIRECTORY);
}

int tree_make(int dirfd, const char *name)
{
	tree_check(mkdirat(dirfd, name, 0777), "make", dirfd, name);
	return tree_open(dirfd, name);
}

void tree_read(int dirfd, const char *name, struct text *t)
{
	struct stat st;

	tree_read_stat(dirfd, name, t, &st);
}

void tree_read_stat(int dirfd, const char *name, struct text *t,
    struct stat *st)
{
	int fd = open_file(dirfd, name, O_RDONLY), r;

	text_clear(t);
	text_adds(t, "");
	r = fstat(fd, st) < 0 ? -errno : text_read(t, fd, READ_MAX);
	if (r == 0 && strlen(t->data) != t->len)
		r = -EINVAL;
	errno = -r;
	tree_check(r, "read", dirfd, name);
	close(fd);
}

void tree_write(int dirfd, const char *name, const char *content)
{
	int fd = open_file(dirfd, name, O_WRONLY | O_CREAT | O_EXCL);
	size_t len = strlen(content);

	errno = ENOSPC;
	tree_check(write(fd, content, len) == (ssize_t)len ? fsync(fd) : -1,
	    "write", dirfd, name);
	close(fd);
}

bool tree_has(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void tree_sync(int dirfd)
{
	tree_check(syncfs(dirfd), "sync", dirfd, ".");
}

/* Some file systems show a name twice that was exchanged meanwhile, so the list
 * is whole before FN changes the directory. */
void tree_each(int from, tree_fn *fn, void *arg)
{
	DIR *dir = fdopendir(tree_open(from, "."));
	struct text names = { 0 };
	struct dirent *d;
	size_t at;

	while (dir && (errno = 0, d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			text_add(&names, d->d_name, strlen(d->d_name) + 1);
	tree_check(!dir || errno ? -1 : 0, "read", from, ".");
	closedir(dir);
	for (at = 0; at < names.len; at += strlen(names.data + at) + 1)
		fn(arg, from, names.data + at);
	text_done(&names);
}

/* ---- the walk ---- */

/* FNV-1a. The order of the names in a directory does not count. */
static void add_to_sum(struct tree *t, int from, const char *name,
    const struct stat *st)
{
	const uint64_t all[] = { st->st_ino, (uint64_t)st->st_size, st->st_mode,
		(uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
		(uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec };
	uint64_t hash = UINT64_C(14695981039346656037);
	size_t len = strlen(name), i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		hash = (hash ^ all[i]) * UINT64_C(1099511628211);
	t->sum += hash;
	if (!t->lock && len > 5 && !strcmp(name + len - 5, ".lock"))
		t->lock = path_of(from, name);
}

/* sendfile(2) reads nothing but a regular file. */
static void copy_file(const struct tree *t, int in, const char *name)
{
	int out = open_file(t->to, name, O_WRONLY | O_CREAT | O_EXCL);
	ssize_t n;

	while ((n = sendfile(out, in, NULL, AT_ONCE)) > 0)
		;
	tree_check(n < 0 ? -1 : 0, "copy", t->to, name);
	close(out);
}

static void descend(struct tree *t, int fd, const char *name)
{
	const int to = t->to;

	if (t->task == TREE_COPY)
		t->to = tree_make(to, name);
	tree_each(fd, tree_walk, t);
	if (t->task == TREE_COPY)
		close(t->to);
	t->to = to;
}

/* A process that was killed together with its parent may still write for a
 * moment, so a directory that is not empty is walked again. */
static void remove_name(struct tree *t, int from, const char *name, bool is_dir)
{
	int r = unlinkat(from, name, is_dir ? AT_REMOVEDIR : 0);

	if (r < 0 && errno == ENOTEMPTY && t->nr_again++ < AGAIN_MAX)
		tree_walk(t, from, name);
	else
		tree_check(r, "remove", from, name);
}

void tree_walk(void *arg, int from, const char *name)
{
	struct tree *t = arg;
	struct stat st;
	bool is_dir;
	int fd = -1;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		tree_check(errno == ENOENT ? 0 : -1, "read", from, name);
		return;
	}
	is_dir = S_ISDIR(st.st_mode);
	if (is_dir || t->task == TREE_COPY)
		fd = try_open(from, name, is_dir ? O_DIRECTORY : 0);
	if (t->task == TREE_SUM)
		add_to_sum(t, from, name, &st);
	if (fd >= 0 && is_dir)
		descend(t, fd, name);
	else if (fd >= 0)
		copy_file(t, fd, name);
	if (fd >= 0)
		close(fd);
	if (t->task == TREE_REMOVE)
		remove_name(t, from, name, is_dir);
}
