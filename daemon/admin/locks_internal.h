/*
 * Shared by the files of "refd locks --clear-dead".
 *
 *	locks.c		the command: search, proofs, consent, removal
 *	locks_print.c	the report on each lock
 */
#ifndef ADMIN_LOCKS_INTERNAL_H
#define ADMIN_LOCKS_INTERNAL_H

#include "daemon/store/refs/dead_lock.h"

enum lock_fate {
	LOCK_UNDECIDED, /* processes that may hold it run */
	LOCK_DEAD,
	LOCK_KEPT,   /* as UNDECIDED, and the time is over */
	LOCK_FAILED, /* ERR: it cannot be looked at, or removed */
	LOCK_REMOVED
};

struct found_lock {
	struct dead_lock lock; /* not open if the search FAILED */
	long named;            /* in "<file>~pid.lock"; 0: none */
	char *name;            /* below the common dir */
	enum lock_fate fate;
	int err;
	/* NULL: dead, because it is older than this boot (dead_lock.h). */
	const char *not_older;
	const struct process *holder; /* of NR that may hold it; borrowed */
	size_t nr_holders;
};

/* Prints the fate of F to standard output. */
void locks_print(const struct found_lock *f, const char *repo, int64_t now_ns,
    bool as_json);

#endif
