/*
 * Locks of ours that an earlier run left standing, found by their inode.
 *
 * Recovery's own: one thread, while nobody of this run uses the repository,
 * or beside those who do: what live windows hold is not touched. Blocks; 0 or negative errno; nothing logs.
 */
#ifndef STORE_STALE_H
#define STORE_STALE_H

#include "daemon/store/repos/repo.h"

/* Windows that may be at work: those from number FROM on, which are of this
 * run, but for the NR_OVER sorted ones of OVER, which left something behind,
 * and for recovery's own, which are of an earlier try. */
struct stale_live {
	uint64_t from;
	const uint64_t *over; /* borrowed */
	size_t nr_over;
};

/* stale_live.c: the window that NAME in stage/ says. 0: none. */
uint64_t stale_window_of(const char *name);
/* Is NAME, of a file in stage/, of one of them? */
bool stale_is_live(const struct stale_live *live, const char *name);
/* Is TOKEN one of the NR sorted ones? */
bool stale_has_token(const uint64_t *tokens, size_t nr, uint64_t token);

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
	struct stale_live live;
	struct stale_lock *locks;
	size_t nr_locks, size;
	struct stale_worktree *worktrees;
	size_t nr_worktrees;
	struct stale_value *values;
	size_t nr_values, values_size;
};

/* Whoever may write in a repository can make entries there without end. Of no
 * more a search looks at, in seconds. */
#define STALE_WORK 4000000

/* Looks in stage/ for tokens that still have links, and only if there are
 * any, through refs/, the top of the git-dir and its worktrees for them.
 * -EUSERS: that takes more than STALE_WORK. Nothing else in recovery returns
 * this. */
int stale_find(struct stale *stale, const struct sys *sys, struct repo *repo,
    struct stale_live live);
/* What ERR, of these or of another call, is for people. */
const char *stale_why(int err);
/* 1: something in stage/ is of a window that is not of LIVE. -EUSERS: as
 * above. */
int stale_any(const struct sys *sys, const struct repo *repo,
    struct stale_live live);
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
