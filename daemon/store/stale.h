/*
 * Locks of ours that an earlier run left standing, found by their inode.
 *
 * Recovery's own: one thread, before anybody else uses the repository;
 * blocks; 0 or negative errno; nothing logs.
 */
#ifndef STORE_STALE_H
#define STORE_STALE_H

#include "daemon/store/repo.h"

/* One standing lock: PATH is without ".lock". */
struct stale_lock {
	uint64_t token; /* the window it belonged to */
	int dirfd;      /* repo->fd, or a worktree's, owned by stale */
	char *path;
	bool done; /* unlocked again */
};

struct stale {
	const struct sys *sys;
	struct repo *repo;
	struct stale_lock *locks;
	size_t nr_locks, size;
	int *worktrees; /* descriptors of worktrees/<id>, owned */
	size_t nr_worktrees;
};

/* Looks in stage/ for tokens that still have links, and only if there are
 * any, through refs/, the top of the git-dir and its worktrees for them. */
int stale_find(struct stale *stale, const struct sys *sys, struct repo *repo);
/* The standing lock on PATH below DIRFD of window TOKEN; NULL: none. */
struct stale_lock *stale_lookup(struct stale *stale, uint64_t token,
    const char *path);
int stale_unlock(struct stale *stale, struct stale_lock *lock);
/* Empties stage/; what stands is unlocked first. */
int stale_clean(struct stale *stale, size_t *unlocked);
void stale_done(struct stale *stale);

#endif
