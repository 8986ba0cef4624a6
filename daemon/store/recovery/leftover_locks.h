/*
 * Locks that an earlier run of refd left, identified by their inodes.
 *
 * One thread, either while nobody of this run uses the repository, or beside
 * live batches, whose locks are not touched. Blocks; 0 or negative errno;
 * nothing logs.
 */
#ifndef STORE_LEFTOVER_LOCKS_H
#define STORE_LEFTOVER_LOCKS_H

#include "daemon/store/repos/lock_walk.h"

/* Batches that may be at work: all numbers from FROM on, because they belong to
 * this run. Exceptions are the NR_OVER batches of OVER (sorted), because they
 * ended and left files, and recovery's own batches, because they belong to an
 * earlier attempt. */
struct live_batches {
	uint64_t from;
	const uint64_t *over; /* borrowed */
	size_t nr_over;
};

/* The number of the batch in NAME, of a file in stage/. 0: none. */
uint64_t leftover_locks_batch_of(const char *name);
/* Does NAME, of a file in stage/, belong to a live batch? */
bool leftover_locks_is_live(const struct live_batches *live, const char *name);

/* A standing lock, with the PATH without ".lock". */
struct leftover_lock {
	uint64_t token; /* the batch that took the lock */
	uint64_t ino;   /* 0: known by its token */
	int dirfd;      /* as struct ref_place */
	const char *worktree;
	char *path;
	bool done; /* unlocked again */
};

/* A staged value with a second name, because link(2) published the value. */
struct leftover_value {
	uint64_t token, ino;
};

struct leftover_numbers {
	uint64_t *items; /* sorted */
	size_t nr, size;
};

struct leftover_locks {
	const struct sys *sys;
	struct repo *repo;
	struct live_batches live;
	struct leftover_lock *locks; /* sorted, but the last NR_ADDED */
	size_t nr_locks, nr_added, size;
	struct leftover_numbers open;   /* batches that did not end */
	struct leftover_numbers listed; /* have a list of reftables staged */
	struct ref_places places;       /* none, if no lock can be left */
	struct leftover_value *values;
	size_t nr_values, values_size;
};

/* Looks in stage/ for tokens that still have links. If there are any, looks for
 * these links in refs/, reftable/, the top of the git-dir and its worktrees.
 * Also finds a lock in reftable/ that has lost its token. With ORPHANS, finds
 * such locks of all refs and of packed-refs, too. ORPHANS is only for a
 * repository that nobody of this run uses, because git may take the name of a
 * lock as soon as a batch has removed the lock. A search for orphans alone ends
 * without an error at a directory that cannot be read. -EUSERS: the search
 * takes more than LOCK_WALK_WORK. Recovery has only one other source of
 * -EUSERS: the reading of a large reftable/ after a failed sync. */
int leftover_locks_find(struct leftover_locks *leftover, const struct sys *sys,
    struct repo *repo, struct live_batches live, bool orphans);
/* The text for ERR, of these functions or of any other call. */
const char *leftover_locks_why(int err);
/* 1: a file in stage/ belongs to a batch that is not LIVE. -EUSERS: as
 * above. */
int leftover_locks_any(const struct sys *sys, const struct repo *repo,
    struct live_batches live);
/* Has batch TOKEN not ended? A batch that ended has removed its token, so the
 * token of an open batch is in stage/. */
bool leftover_locks_is_open(const struct leftover_locks *leftover,
    uint64_t token);
/* Has batch TOKEN a list of reftables in stage/? A batch stages its lists
 * before the record of an update, and only publishing takes the list of a
 * record away, so without a list nothing is left to publish. */
bool leftover_locks_has_list(const struct leftover_locks *leftover,
    uint64_t token);
/* Adds a lock on PATH of WORKTREE that was taken for batch TOKEN. The look-up
 * is binary, so finds the lock only after leftover_locks_sort(). -ENOENT: no
 * such worktree. */
int leftover_locks_add(struct leftover_locks *leftover, uint64_t token,
    const char *worktree, const char *path);
void leftover_locks_sort(struct leftover_locks *leftover);
/* The standing lock on PATH of WORKTREE by batch TOKEN; NULL: none. */
struct leftover_lock *leftover_locks_lookup(struct leftover_locks *leftover,
    uint64_t token, const char *worktree, const char *path);
/* The standing lock on PATH of WORKTREE, by any batch of an earlier run. Only
 * one batch can have a lock, so the first match is the only one. NULL: none. */
struct leftover_lock *leftover_locks_on(struct leftover_locks *leftover,
    const char *worktree, const char *path);
/* Is INO the inode of a value that batch TOKEN staged? A renamed value has left
 * stage/, so only linked values are found. */
bool leftover_locks_is_value(const struct leftover_locks *leftover,
    uint64_t token, uint64_t ino);
int leftover_locks_unlock(struct leftover_locks *leftover,
    struct leftover_lock *lock);
/* Removes all locks of batches that are not among the NR sorted TOKENS. Adds to
 * *UNLOCKED. */
int leftover_locks_unlock_others(struct leftover_locks *leftover,
    const uint64_t *tokens, size_t nr, size_t *unlocked);
/* Removes the tokens of earlier recoveries, whose locks are gone. A recovery
 * that fails can leave one, and as many come as there are retries. */
void leftover_locks_drop_tokens(const struct leftover_locks *leftover);
/* Removes all locks and all old files in stage/. *UNLOCKED as above. */
int leftover_locks_clean(struct leftover_locks *leftover, size_t *unlocked);
void leftover_locks_done(struct leftover_locks *leftover);

#endif
