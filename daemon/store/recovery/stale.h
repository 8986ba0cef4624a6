/*
 * Locks of ours that an earlier run left standing, found by their inode.
 *
 * Recovery's own: one thread, while nobody of this run uses the repository,
 * or beside those who do: what they hold has higher window numbers and is
 * not touched. Blocks; 0 or negative errno; nothing logs.
 */
#ifndef STORE_STALE_H
#define STORE_STALE_H

#include "daemon/store/repos/repo.h"

/* One standing lock: PATH is without ".lock". */
struct stale_lock {
	uint64_t token;       /* the window it belonged to */
	int dirfd;            /* repo->fd, or a worktree's, owned by stale */
	const char *worktree; /* "", or its id, owned by stale */
	char *path;
	bool done; /* unlocked again */
};

struct stale_worktree {
	int fd;
	char *id;
};

/* A staged value that has a second name: it was published by link(2). */
struct stale_value {
	uint64_t token, ino;
};

struct stale {
	const struct sys *sys;
	struct repo *repo;
	/* Windows from this number on are of this run, but for recovery's own:
	 * those that are found are of an earlier try. */
	uint64_t live;
	struct stale_lock *locks;
	size_t nr_locks, size;
	struct stale_worktree *worktrees;
	size_t nr_worktrees;
	struct stale_value *values;
	size_t nr_values, values_size;
};

/* Looks in stage/ for tokens that still have links, and only if there are
 * any, through refs/, the top of the git-dir and its worktrees for them. */
int stale_find(struct stale *stale, const struct sys *sys, struct repo *repo,
    uint64_t live);
/* 1: something in stage/ is of a window before LIVE. */
int stale_any(const struct sys *sys, const struct repo *repo, uint64_t live);
/* The standing lock on PATH of WORKTREE by window TOKEN; NULL: none. */
struct stale_lock *stale_lookup(struct stale *stale, uint64_t token,
    const char *worktree, const char *path);
/* Is INO the inode of a value that window TOKEN staged? Found only where it
 * was linked and not renamed. */
bool stale_is_value(const struct stale *stale, uint64_t token, uint64_t ino);
int stale_unlock(struct stale *stale, struct stale_lock *lock);
/* Those whose window is none of the NR sorted TOKENS. *UNLOCKED is added to. */
int stale_unlock_others(struct stale *stale, const uint64_t *tokens, size_t nr,
    size_t *unlocked);
/* Unlocks what stands and removes what is in stage/. *UNLOCKED as above. */
int stale_clean(struct stale *stale, size_t *unlocked);
void stale_done(struct stale *stale);

#endif
