/*
 * Which transaction is admitted next: a queue for each path of a repository,
 * in order of arrival, and workers that take the queues in turn.
 *
 * A repository's disk may hang, and its owner may see to it that its files are
 * slow. So that this costs nobody else anything:
 *	one worker at most is at work in a repository
 *	ADMISSION_PER_PLACE at most on one file system, and as many open
 *		repositories below one root that were not open before
 *	all but one at most for one user
 *	users take turns, and a user's queues do; a turn is a bounded piece of
 *		work (lane.c)
 * A queue counts as the user's whose transaction is its first.
 *
 * Everything here is called with the store's mutex held; nothing blocks.
 */
#ifndef STORE_ADMISSION_H
#define STORE_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/txn.h"

#define ADMISSION_WORKERS   6
#define ADMISSION_PER_PLACE 2

/* What waits by one path. It is in one list at most: ready or waiting. */
struct admission_queue {
	char *git_dir;      /* owned */
	struct txn *txns;   /* a list, by next and prev */
	const void *place;  /* equal for what may hang together; compared */
	uint32_t uid;       /* of the first */
	uint64_t waits_for; /* a repository that another worker is in */
	bool is_worked_on;
	struct admission_queue *next, *prev;
	UT_hash_handle hh;
};

/* What a worker is at. */
struct admission_slot {
	struct admission_queue *queue; /* or NULL */
	uint64_t repo;                 /* that it is in; 0: none */
	const char *path; /* borrowed; NULL: it has nothing to do */
	int64_t since_ns; /* monotonic */
};

struct admission {
	struct admission_queue *by_path; /* all of them, owned */
	struct admission_queue *ready, *waiting;
	struct admission_slot slots[ADMISSION_WORKERS];
	uint64_t nr_put;
};

/* Behind all that came by its path. PLACE is for a path that has no queue yet.
 * -ENOMEM. */
int admission_put(struct admission *a, struct txn *txn, const void *place);
/* TXN waits no longer, if it does. */
void admission_remove(struct admission *a, struct txn *txn);

/* Whose turn it is, for worker SLOT, which has it until admission_end(). NULL:
 * nobody's now. */
struct admission_queue *admission_begin(struct admission *a, size_t slot,
    int64_t now_ns);
/* The first of SLOT's queue, if it was put before the first BEFORE were. */
struct txn *admission_take(struct admission *a, size_t slot, uint64_t before);
/* It goes on with the next turn. */
void admission_put_back(struct admission *a, size_t slot, struct txn *txn);
/* SLOT works in REPO from now on. false: another does; its queue waits. */
bool admission_claim(struct admission *a, size_t slot, uint64_t repo);
void admission_end(struct admission *a, size_t slot);
/* Work without a queue, at PATH. */
void admission_begin_other(struct admission *a, size_t slot, const char *path,
    int64_t now_ns);

/* Could a worker that is idle do something? */
bool admission_has_work(const struct admission *a);

#endif
