/*
 * Shared by the files of "refd locks --clear-dead".
 *
 *	locks.c		the command: proofs, consent, removal
 *	locks_find.c	finds the locks of a repository
 *	locks_print.c	the report on each lock
 */
#ifndef ADMIN_LOCKS_INTERNAL_H
#define ADMIN_LOCKS_INTERNAL_H

#include "daemon/store/refs/dead_lock.h"
#include "daemon/store/repos/repo_internal.h"

/* Every lock keeps a descriptor open, so there is a limit. */
#define LOCKS_MAX 400

enum lock_fate {
	LOCK_UNDECIDED, /* processes that may hold it run */
	LOCK_DEAD,
	LOCK_KEPT,   /* as UNDECIDED, and the time is over */
	LOCK_FAILED, /* ERR: it cannot be looked at, or removed */
	LOCK_REMOVED
};

struct found_lock {
	struct dead_lock lock; /* not open if FAILED by locks_find() */
	char *name;            /* below the common dir */
	enum lock_fate fate;
	int err;
	/* NULL: dead, because it is older than this boot (dead_lock.h). */
	const char *not_older;
	const struct process *holder; /* of NR that may hold it; borrowed */
	size_t nr_holders;
};

struct found_locks {
	const struct sys *sys;
	int git_dir; /* borrowed: the common dir */
	struct found_lock *list;
	size_t nr, size;
	bool has_more;  /* than LOCKS_MAX */
	int *worktrees; /* the directories of locks */
	size_t nr_worktrees;
};

/* Opens the locks of refs, of packed-refs and of reftables, also of linked
 * worktrees. REPO: only fd. Locks of refd and names that vanish are left out.
 * Returns 0 or a negative errno, and needs locks_done() in any case. */
int locks_find(struct found_locks *all, const struct sys *sys,
    const struct repo *repo);
void locks_done(struct found_locks *all);

/* Prints the fate of F to standard output. */
void locks_print(const struct found_lock *f, const char *repo, int64_t now_ns,
    bool as_json);

#endif
