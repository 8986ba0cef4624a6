/*
 * Whose turn it is: per repository a queue of transactions that have
 * something to try, and the repositories in turn.
 *
 * A repository that was served goes to the end of the round, a transaction
 * that comes back from a batch to the end of its repository's queue; so
 * neither a repository nor a transaction with very many updates is served
 * twice while another waits. Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_FAIRNESS_H
#define SCHEDULER_FAIRNESS_H

#include "daemon/scheduler/table.h"

/* One repository's. Lives while a transaction is in it. */
struct repo_queue {
	struct fairness *fairness;
	uint64_t key;
	UT_hash_handle hh;
	size_t nr_entries;
	/* The first deletion in DELETING_IN, a batch in the store's hands or
	 * being formed; NULL: there is none in any. */
	const struct txn_update *deleting;
	const struct batch *deleting_in;
	bool goes_alone;        /* TXN_AGAIN_ALONE: in batches of its own */
	struct entry *ready;    /* something may be tried; next, prev */
	struct entry *arriving; /* not all updates queued yet */
	struct repo_queue *next, *prev;
	struct repo_queue *next_arriving, *prev_arriving;
};

/* Zero-initialised is empty. */
struct fairness {
	struct repo_queue *table;
	struct repo_queue *ready; /* whose turn is next comes first */
	size_t nr_ready;
	struct repo_queue *arriving;
};

/* The entries must be gone or never looked at again. */
void fairness_done(struct fairness *t);

/* ENT belongs to the queue of repository KEY and is arriving there, last.
 * -1: out of memory. */
int fairness_join(struct fairness *t, struct entry *ent, uint64_t key);
/* All of ENT's updates are queued. */
void fairness_arrived(struct entry *ent);
/* ENT has nothing undecided any more. */
void fairness_leave(struct entry *ent);

/* Puts ENT among the ready or takes it out: it must WAIT, have arrived, and
 * have names that are up; all of them if it goes whole. With goes_first it comes
 * first, its repository too. To be called whenever one of these changed. */
void fairness_refresh(struct entry *ent);

/* The repository whose turn it is, which thereby becomes the last. NULL:
 * nothing is ready. */
struct repo_queue *fairness_next(struct fairness *t);
/* It could not be served: it is the next again. */
void fairness_again(struct repo_queue *q);
/* Whose updates are to be queued next; it becomes the last. */
struct entry *fairness_next_arriving(struct fairness *t);

#endif
