/*
 * The directories around loose refs: finding files below a name, making room
 * for a file, and pruning.
 *
 * Happy path: the name is free, as a single system call shows.
 *
 * Failure modes:
 *	another process makes or removes directories meanwhile: rmdir(2)
 *	decides; a directory that is no longer empty stays
 *	more entries than LOOSE_WALK_MAX, all directories or no refs: -E2BIG;
 *	directories removed so far stay removed
 *	deep trees: one directory is open at a time, and REFD_PATH_MAX bounds
 *	the depth
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/loose.h"
#include "proto/limits.h"

struct dir_walk {
	const struct sys *sys;
	int dirfd;
	bool refs_only;           /* skip names that no ref can have */
	bool remove;              /* directories found empty */
	size_t left;              /* entries left to look at */
	char path[REFD_PATH_MAX]; /* of the file found */
};

/* Names of the subdirectories of a directory, each with its NUL. */
struct dir_names {
	char *data;
	size_t len, size;
};

static int names_add(struct dir_names *names, const char *name)
{
	size_t n = strlen(name) + 1;
	char *grown;

	if (names->size - names->len < n) {
		grown = realloc(names->data, 2 * names->size + n);
		if (grown == NULL)
			return -ENOMEM;
		names->data = grown;
		names->size = 2 * names->size + n;
	}
	memcpy(names->data + names->len, name, n);
	names->len += n;
	return 0;
}

static bool can_be_ref(const char *name)
{
	size_t len = strlen(name);

	return name[0] != '.' &&
	    (len < 5 || strcmp(name + len - 5, ".lock") != 0);
}

/* Appends "/NAME" to the walk's path of LEN bytes. */
static int enter(struct dir_walk *w, size_t len, const char *name)
{
	size_t n = strlen(name);

	if (len + 1 + n >= sizeof(w->path))
		return -ENAMETOOLONG;
	w->path[len] = '/';
	memcpy(w->path + len + 1, name, n + 1);
	return 0;
}

/* 1: the entry is a directory. A link to a directory is none. */
static int is_directory(struct dir_walk *w, size_t len,
    const struct sys_dirent *entry)
{
	struct sys_stat st;
	int r;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR;
	r = enter(w, len, entry->name);
	if (r == 0)
		r = SYS(w->sys, lstatat, w->dirfd, w->path, &st);
	w->path[len] = '\0';
	return r < 0 ? r : S_ISDIR(st.mode);
}

/* Reads one directory. 1: there is a file, and W has its path; else SUBDIRS has
 * the subdirectories. */
static int list_directory(struct dir_walk *w, struct dir_names *subdirs)
{
	size_t len = strlen(w->path);
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	r = SYS(w->sys, dir_open, w->dirfd, w->path, &dir);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return r;
	while ((r = SYS(w->sys, dir_next, dir, &entry)) > 0) {
		if (w->left-- == 0) {
			w->left = 0;
			r = -E2BIG;
			break;
		}
		if (w->refs_only && !can_be_ref(entry.name))
			continue;
		r = is_directory(w, len, &entry);
		if (r == -ENOENT)
			continue;
		if (r == 0 && (r = enter(w, len, entry.name)) == 0) {
			r = 1;
			break;
		}
		if (r > 0)
			r = names_add(subdirs, entry.name);
		if (r < 0)
			break;
	}
	SYS(w->sys, dir_close, dir);
	return r;
}

/* 1: there is a file at some depth below the walk's path, which becomes the
 * path of the file; else the path is unchanged. */
static int walk_tree(struct dir_walk *w)
{
	size_t len = strlen(w->path), at;
	struct dir_names subdirs = { 0 };
	int r;

	r = list_directory(w, &subdirs);
	for (at = 0; r == 0 && at < subdirs.len;
	    at += strlen(subdirs.data + at) + 1) {
		r = enter(w, len, subdirs.data + at);
		if (r == 0)
			r = walk_tree(w);
		if (r == 0)
			w->path[len] = '\0';
	}
	free(subdirs.data);
	if (r == 0 && w->remove)
		r = SYS(w->sys, rmdirat, w->dirfd, w->path);
	return r == -ENOENT ? 0 : r;
}

static int walk_init(struct dir_walk *w, const struct sys *sys, int dirfd,
    const char *path)
{
	size_t len = strlen(path);

	if (len >= sizeof(w->path))
		return -ENAMETOOLONG;
	w->sys = sys;
	w->dirfd = dirfd;
	w->refs_only = w->remove = false;
	w->left = LOOSE_WALK_MAX;
	memcpy(w->path, path, len + 1);
	return 0;
}

int loose_dir_holds_file(const struct sys *sys, int dirfd, const char *path)
{
	struct dir_walk w;
	int r;

	r = walk_init(&w, sys, dirfd, path);
	return r < 0 ? r : walk_tree(&w);
}

/* mkdir(2) and rmdir(2) may answer either for a directory in use. */
static bool is_not_empty(int r)
{
	return r == -ENOTEMPTY || r == -EEXIST;
}

int loose_clear_dirs(const struct sys *sys, int dirfd, const char *path,
    char **blocker)
{
	struct dir_walk w;
	int r;

	if (blocker != NULL)
		*blocker = NULL;
	r = SYS(sys, rmdirat, dirfd, path);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (!is_not_empty(r))
		return r;
	r = walk_init(&w, sys, dirfd, path);
	if (r < 0)
		return r;
	w.remove = true;
	r = walk_tree(&w);
	if (r > 0 && blocker != NULL)
		*blocker = strdup(w.path);
	return r > 0 || is_not_empty(r) ? -ENOTEMPTY : r;
}

static int find(const struct sys *sys, int dirfd, const char *path,
    bool refs_only, char **found)
{
	struct dir_walk w;
	char *copy;
	int r;

	r = walk_init(&w, sys, dirfd, path);
	if (r < 0)
		return r;
	w.refs_only = refs_only;
	r = walk_tree(&w);
	if (r <= 0)
		return r;
	copy = strdup(w.path);
	if (copy == NULL)
		return -ENOMEM;
	*found = copy;
	return 1;
}

int loose_find_below(const struct sys *sys, int dirfd, const char *path,
    char **found)
{
	return find(sys, dirfd, path, true, found);
}

int loose_find_file(const struct sys *sys, int dirfd, const char *path,
    char **found)
{
	return find(sys, dirfd, path, false, found);
}

void loose_prune_parents(const struct sys *sys, int dirfd, const char *path,
    unsigned keep)
{
	char dir[REFD_PATH_MAX];
	size_t len = strlen(path);
	unsigned depth = 0;
	char *slash;

	if (len >= sizeof(dir))
		return;
	memcpy(dir, path, len + 1);
	for (slash = dir; (slash = strchr(slash, '/')) != NULL; slash++)
		depth++;
	for (; depth > keep; depth--) {
		slash = strrchr(dir, '/');
		*slash = '\0';
		if (SYS(sys, rmdirat, dirfd, dir) < 0)
			return;
	}
}

int loose_stays_inside(const struct sys *sys, int dirfd, const char *path)
{
	char dir[REFD_PATH_MAX], *slash;
	int r;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash == NULL)
		return 0;
	*slash = '\0';
	r = SYS(sys, stays_below, dirfd, dir);
	return r == -EXDEV || r == -ELOOP ? -ELOOP : 0;
}
