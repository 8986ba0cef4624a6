#include "client/base/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DIRECTORY (O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walking {
	walk_fn *fn;
	void *arg;
	char path[PATH_MAX];
};

static enum walk_next show(struct walking *w, struct walk_at *at);

/* The file may have become another kind of file since ENTRY was read, so
 * ENOTDIR is no error. */
static enum walk_next show_entry(struct walking *w, const struct dirent *entry,
    int dir, int level)
{
	struct walk_at at = { .around = dir,
		.name = entry->d_name,
		.path = w->path,
		.level = level,
		.dir = -1 };
	enum walk_next next;

	if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) {
		at.dir = openat(dir, entry->d_name, O_PATH | DIRECTORY);
		if (at.dir < 0 && errno != ENOTDIR)
			at.err = -errno;
	}
	next = show(w, &at);
	if (at.dir >= 0)
		close(at.dir);
	return next;
}

/* WALK_END, or WALK_ON at the end of the directory. */
static enum walk_next show_entries(struct walking *w, struct walk_at *at,
    DIR *dir)
{
	const size_t len = strlen(w->path), room = sizeof(w->path) - len;
	enum walk_next next = WALK_ON;
	struct dirent *d;

	while (next == WALK_ON && (errno = 0, d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (snprintf(w->path + len, room, "/%s", d->d_name) < (int)room)
			next = show_entry(w, d, dirfd(dir), at->level + 1);
		else
			at->err = -ENAMETOOLONG;
		w->path[len] = '\0';
	}
	if (next == WALK_ON && errno)
		at->err = -errno;
	return next;
}

static enum walk_next enter(struct walking *w, struct walk_at *at)
{
	enum walk_next next = WALK_ON;
	DIR *dir = NULL;
	int fd = -1;

	errno = ELOOP;
	if (at->level < WALK_LEVELS_MAX)
		fd = openat(at->dir, ".", O_RDONLY | DIRECTORY);
	if (fd >= 0)
		dir = fdopendir(fd);
	if (dir) {
		next = show_entries(w, at, dir);
		closedir(dir);
	} else {
		at->err = -errno;
		if (fd >= 0)
			close(fd);
	}
	return next == WALK_ON && at->err ? w->fn(w->arg, at) : next;
}

static enum walk_next show(struct walking *w, struct walk_at *at)
{
	enum walk_next next = w->fn(w->arg, at);

	if (next == WALK_ON && at->dir >= 0)
		next = enter(w, at);
	return next == WALK_END ? WALK_END : WALK_ON;
}

int walk_below(const char *dir, walk_fn *fn, void *arg)
{
	struct walking w = { .fn = fn, .arg = arg };
	struct walk_at at = { .around = AT_FDCWD, .name = dir, .path = w.path };
	size_t len = strlen(dir);

	if (len >= sizeof(w.path))
		return -ENAMETOOLONG;
	at.dir = open(dir, O_PATH | DIRECTORY);
	if (at.dir < 0)
		return -errno;
	memcpy(w.path, dir, len + 1);
	while (len > 0 && dir[len - 1] == '/')
		w.path[--len] = '\0';
	show(&w, &at);
	close(at.dir);
	return 0;
}
