/*
 * Finds the locks that block updates of refs: "<ref>.lock" below refs/,
 * "HEAD.lock" and locks of other refs in capitals, packed-refs.lock, and the
 * locks of reftables. Locks of other files of git are left out, because
 * config.lock, index.lock and shallow.lock block no ref.
 *
 * Other users may make any number of directories and names, so the walk ends at
 * LOCKS_WORK entries, and takes no path longer than the path of a lock.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/locks_internal.h"
#include "proto/lib/array.h"
#include "proto/lib/lock_pid.h"
#include "proto/limits.h"

#define LOCKS_WORK 4000000
#define SUFFIX     ".lock"
#define CAPITALS   "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-0123456789"

struct lock_listing {
	struct found_locks *all;
	int dirfd;
	const char *prefix; /* of names: "", or "worktrees/<id>/" */
	char path[REFD_REFNAME_MAX + sizeof(SUFFIX)];
	size_t left; /* of LOCKS_WORK */
};

/* In the git-dir itself. */
static bool is_top_lock(const char *name)
{
	const size_t len = lock_file_len(name);

	return len > 0 &&
	    (strcmp(name, "packed-refs" SUFFIX) == 0 ||
		strspn(name, CAPITALS) == len);
}

static int add_lock(struct lock_listing *w)
{
	struct found_locks *all = w->all;
	struct found_lock *grown, *f;
	int r;

	if (all->nr == LOCKS_MAX) {
		all->has_more = true;
		return 0;
	}
	grown = array_room(all->list, all->nr, &all->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	all->list = grown;
	f = &all->list[all->nr];
	memset(f, 0, sizeof(*f));
	r = dead_lock_open(&f->lock, all->sys, w->dirfd, w->path);
	if (r == -ENOENT || r == -ENOTDIR || r == -EMLINK || r == -ENOMEM)
		return r == -ENOMEM ? r : 0;
	if (r < 0) {
		f->lock.fd = -1;
		f->fate = LOCK_FAILED;
		f->err = r;
	}
	if (asprintf(&f->name, "%s%s", w->prefix, w->path) < 0) {
		dead_lock_close(&f->lock, all->sys);
		return -ENOMEM;
	}
	all->nr++;
	return 0;
}

/* Walks the first LEN bytes of the path, or the git-dir if LEN is 0. */
static int walk_dir(struct lock_listing *w, size_t len, bool deep);

static int walk_entry(struct lock_listing *w, size_t len,
    const struct sys_dirent *entry, bool deep)
{
	size_t begin = len > 0 ? len + 1 : 0, nr = strlen(entry->name);
	int r = 0;

	if (w->left-- == 0)
		return -EUSERS;
	if (begin + nr >= sizeof(w->path))
		return 0;
	if (len > 0)
		w->path[len] = '/';
	memcpy(w->path + begin, entry->name, nr + 1);
	if (deep && (entry->type == DT_DIR || entry->type == DT_UNKNOWN))
		r = walk_dir(w, begin + nr, true);
	w->path[begin + nr] = '\0';
	if (r < 0 || entry->type == DT_DIR)
		return r;
	if (len == 0 ? !is_top_lock(w->path) : lock_file_len(w->path) == 0)
		return 0;
	return add_lock(w);
}

static int walk_dir(struct lock_listing *w, size_t len, bool deep)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	r = SYS(w->all->sys, dir_open, w->dirfd, len > 0 ? w->path : ".", &dir);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
	while ((r = SYS(w->all->sys, dir_next, dir, &entry)) > 0)
		if ((r = walk_entry(w, len, &entry, deep)) < 0)
			break;
	SYS(w->all->sys, dir_close, dir);
	return r;
}

static int walk_git_dir(struct lock_listing *w, int dirfd, const char *prefix)
{
	int r;

	w->dirfd = dirfd;
	w->prefix = prefix;
	r = walk_dir(w, 0, false);
	if (r == 0) {
		strcpy(w->path, "reftable");
		r = walk_dir(w, strlen(w->path), false);
	}
	strcpy(w->path, "refs");
	return r < 0 ? r : walk_dir(w, strlen(w->path), true);
}

static int walk_worktree(struct lock_listing *w, const struct repo *repo,
    const char *id)
{
	struct found_locks *all = w->all;
	char prefix[REFD_PATH_MAX];
	int fd, *grown;

	fd = repo_open_worktree(all->sys, repo, id);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	grown =
	    realloc(all->worktrees, (all->nr_worktrees + 1) * sizeof(*grown));
	if (grown == NULL) {
		SYS(all->sys, close, fd);
		return -ENOMEM;
	}
	all->worktrees = grown;
	all->worktrees[all->nr_worktrees++] = fd;
	snprintf(prefix, sizeof(prefix), "worktrees/%s/", id);
	return walk_git_dir(w, fd, prefix);
}

int locks_find(struct found_locks *all, const struct sys *sys,
    const struct repo *repo)
{
	struct lock_listing w = { .all = all, .left = LOCKS_WORK };
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	*all = (struct found_locks){ .sys = sys, .git_dir = repo->fd };
	r = walk_git_dir(&w, repo->fd, "");
	if (r < 0)
		return r;
	r = SYS(sys, dir_open, repo->fd, "worktrees", &dir);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0)
		if ((r = walk_worktree(&w, repo, entry.name)) < 0)
			break;
	SYS(sys, dir_close, dir);
	return r;
}

void locks_done(struct found_locks *all)
{
	size_t i;

	for (i = 0; i < all->nr; i++) {
		dead_lock_close(&all->list[i].lock, all->sys);
		free(all->list[i].name);
	}
	for (i = 0; i < all->nr_worktrees; i++)
		SYS(all->sys, close, all->worktrees[i]);
	free(all->list);
	free(all->worktrees);
}
