/*
 * The happy path: one buffer has the path of all levels, because a directory
 * may be as deep as a path is long. The type of an entry tells directories.
 *
 * Failures: some file systems tell no types, so lstat does. A directory that
 * cannot be read may hide a lock. So it ends a walk for locks, and the caller
 * decides what follows; a walk through a tree tells the caller, and goes on.
 */
#include "daemon/store/repos/lock_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/tables/stack/stack.h"
#include "proto/lib/lock_pid.h"
#include "proto/limits.h"

#define PATH_BYTES_OF_WORK 32
#define WORKTREE_WORK      1000
/* The longest ref, with ".lock". */
#define LOCK_PATH_MAX (REFD_REFNAME_MAX + sizeof(".lock"))

struct walk {
	const struct sys *sys;
	lock_file_fn *fn;
	void *arg;
	size_t *left;
	size_t path_max;
	bool is_deep, has_locks, goes_on;
	struct lock_file file;
	char path[REFD_PATH_MAX];
};

static int spend(size_t *left, size_t work)
{
	if (*left < work)
		return -EUSERS;
	*left -= work;
	return 0;
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR;
}

/* ---- worktrees ---- */

static int add_place(struct ref_places *places, const struct sys *sys,
    const struct repo *repo, const char *id)
{
	struct ref_place *grown;
	char *copy;
	int fd;

	fd = repo_open_worktree(sys, repo, id);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	grown = realloc(places->list, (places->nr + 1) * sizeof(*grown));
	if (grown != NULL)
		places->list = grown;
	copy = strdup(id);
	if (grown == NULL || copy == NULL) {
		if (fd != repo->fd)
			SYS(sys, close, fd);
		free(copy);
		return -ENOMEM;
	}
	grown[places->nr++] = (struct ref_place){ fd, copy };
	return 0;
}

static int open_worktrees(struct ref_places *places, const struct sys *sys,
    const struct repo *repo, size_t *left)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	r = SYS(sys, dir_open, repo->fd, "worktrees", &dir);
	if (r < 0)
		return is_gone(r) ? 0 : r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		r = spend(left, 1 + WORKTREE_WORK);
		if (r == 0)
			r = add_place(places, sys, repo, entry.name);
		if (r < 0)
			break;
	}
	SYS(sys, dir_close, dir);
	return r;
}

int lock_places_open(struct ref_places *places, const struct sys *sys,
    const struct repo *repo, size_t *left)
{
	int r = add_place(places, sys, repo, "");

	return r < 0 ? r : open_worktrees(places, sys, repo, left);
}

void lock_places_close(struct ref_places *places, const struct sys *sys)
{
	size_t i;

	for (i = 0; i < places->nr; i++) {
		if (i > 0)
			SYS(sys, close, places->list[i].dirfd);
		free((char *)(uintptr_t)places->list[i].worktree);
	}
	free(places->list);
	*places = (struct ref_places){ 0 };
}

/* ---- one directory ---- */

static int failed(struct walk *w, int err)
{
	int r;

	if (is_gone(err))
		return 0;
	if (!w->goes_on)
		return err == -ELOOP || err == -ENAMETOOLONG ? 0 : err;
	w->file.err = err;
	r = w->fn(w->arg, &w->file);
	w->file.err = 0;
	return r;
}

/* FN may look at each lock by its path below the place. A longer path costs
 * more, so it counts as more work. */
static int visit(struct walk *w, size_t len)
{
	int r = 0;

	if (w->has_locks) {
		if (lock_file_len(w->path) == 0)
			return 0;
		r = spend(w->left, len / PATH_BYTES_OF_WORK);
	}
	return r < 0 ? r : w->fn(w->arg, &w->file);
}

/* 1 for a directory, 0 for another file. A flat walk for locks enters no
 * directory. So a name that is no lock counts as a file, because visit() leaves
 * the name out. A damaged lock counts as a file, too, because FN looks at each
 * lock itself. */
static int is_dir(const struct walk *w, size_t len, unsigned char type)
{
	const bool is_flat = w->has_locks && !w->is_deep;
	struct sys_stat st;
	int r;

	if (type != DT_UNKNOWN)
		return type == DT_DIR;
	if (is_flat && lock_file_len(w->path) == 0)
		return 0;
	r = spend(w->left, len / PATH_BYTES_OF_WORK);
	if (r < 0)
		return r;
	r = SYS(w->sys, lstatat, w->file.place->dirfd, w->path, &st);
	if (r < 0)
		return is_flat && !is_gone(r) ? 0 : r;
	return S_ISDIR(st.mode);
}

static int walk(struct walk *w, size_t len);

static int enter(struct walk *w, size_t len, const struct sys_dirent *entry)
{
	const size_t begin = len > 0 ? len + 1 : 0, nr = strlen(entry->name);
	int r = spend(w->left, 1);

	if (r < 0)
		return r;
	if (begin + nr >= w->path_max)
		return failed(w, -ENAMETOOLONG);
	if (len > 0)
		w->path[len] = '/';
	memcpy(w->path + begin, entry->name, nr + 1);
	w->file.ino = entry->ino;
	r = is_dir(w, begin + nr, entry->type);
	if (r < 0)
		r = failed(w, r);
	else if (r == 0)
		r = visit(w, begin + nr);
	else
		r = w->is_deep ? walk(w, begin + nr) : 0;
	w->path[len] = '\0';
	return r;
}

/* Walks the first LEN bytes of the path; 0: the place itself. */
static int walk(struct walk *w, size_t len)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r = spend(w->left, len / PATH_BYTES_OF_WORK), end = 0;

	if (r < 0)
		return r;
	r = SYS(w->sys, dir_open, w->file.place->dirfd, len > 0 ? w->path : ".",
	    &dir);
	if (r < 0)
		return failed(w, r);
	while (end == 0 && (r = SYS(w->sys, dir_next, dir, &entry)) > 0)
		end = enter(w, len, &entry);
	SYS(w->sys, dir_close, dir);
	return end == 0 && r < 0 ? failed(w, r) : end;
}

static int walk_path(struct walk *w, const char *path, bool is_deep)
{
	w->is_deep = is_deep;
	w->file.path = strcpy(w->path, path);
	return walk(w, strlen(path));
}

/* ---- walks ---- */

static int walk_locks(struct walk *w, const struct ref_place *place)
{
	int r;

	w->file.place = place;
	r = walk_path(w, "", false);
	if (r == 0)
		r = walk_path(w, STACK_DIRECTORY, false);
	return r != 0 ? r : walk_path(w, "refs", true);
}

int lock_walk(const struct sys *sys, const struct repo *repo,
    struct ref_places *places, size_t *left, lock_file_fn *fn, void *arg)
{
	struct walk w = { .sys = sys,
		.fn = fn,
		.arg = arg,
		.left = left,
		.path_max = LOCK_PATH_MAX,
		.has_locks = true };
	int end = 0, r = add_place(places, sys, repo, "");
	size_t i;

	for (i = 0; i < places->nr && end == 0; i++) {
		end = walk_locks(&w, &places->list[i]);
		if (i == 0 && end == 0)
			r = open_worktrees(places, sys, repo, left);
	}
	return end != 0 || r == -ELOOP ? end : r;
}

int lock_walk_dir(const struct sys *sys, int dirfd, size_t *left,
    lock_file_fn *fn, void *arg)
{
	const struct ref_place place = { dirfd, "" };
	struct walk w = { .sys = sys,
		.fn = fn,
		.arg = arg,
		.left = left,
		.path_max = REFD_PATH_MAX,
		.file.place = &place };

	return walk_path(&w, "", false);
}

int lock_walk_tree(const struct sys *sys, const struct ref_place *place,
    const char *dir, lock_file_fn *fn, void *arg)
{
	size_t left = SIZE_MAX;
	struct walk w = { .sys = sys,
		.fn = fn,
		.arg = arg,
		.left = &left,
		.path_max = REFD_PATH_MAX,
		.goes_on = true,
		.file.place = place };

	return walk_path(&w, dir, true);
}

int lock_walk_open_pid(const struct sys *sys, int dirfd, const char *path)
{
	char pid[REFD_PATH_MAX];
	int r = lock_pid_path(pid, path);

	return r < 0 ? r :
		       SYS(sys, openat, dirfd, pid, O_RDONLY | O_NOFOLLOW, 0);
}
