/*
 * The order of repositories and transactions. Every repository has a queue of
 * transactions that are ready, and the repositories take turns.
 *
 * After a turn a repository goes to the end of the round. A transaction that
 * comes back from a batch goes to the end of the queue of its repository. So a
 * repository or a transaction with very many updates never gets two turns while
 * another is ready. Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_FAIRNESS_H
#define SCHEDULER_FAIRNESS_H

#include "daemon/scheduler/table.h"

/* The queue of a repository. Exists while a transaction is in the queue. */
struct repo_queue {
	struct fairness *fairness;
	uint64_t key;
	UT_hash_handle hh;
	size_t nr_entries;
	/* The batch with deletions of the repository, which is being formed or
	 * is in the store. NULL: no batch holds a deletion. */
	const struct batch *deleting_in;
	struct entry *parked; /* entries that wait until this batch is back */
	bool goes_alone;      /* TXN_AGAIN_ALONE: in separate batches */
	/* With reftables one list has all refs, so one batch is in the store at
	 * a time (store_writes_alone()). While HELD_BY, this batch, is in the
	 * store, and until RESTS_UNTIL_NS, the queue is not ready. */
	bool writes_alone;
	const struct batch *held_by;
	int64_t rests_until_ns; /* 0: the queue does not rest */
	struct repo_queue *next_resting, *prev_resting;
	struct entry *ready;    /* ready to go; next, prev */
	struct entry *arriving; /* not all updates queued yet */
	struct repo_queue *next, *prev;
	struct repo_queue *next_arriving, *prev_arriving;
};

/* Empty if zero-initialised. */
struct fairness {
	struct repo_queue *table;
	struct repo_queue *ready; /* in the order of their turns */
	size_t nr_ready;
	struct repo_queue *resting; /* few: one per busy repository */
	struct repo_queue *arriving;
};

/* Call only after all entries are gone, or when no entry is used again. */
void fairness_done(struct fairness *t);

/* Puts ENT last into the queue of repository KEY, as arriving. -1: out of
 * memory. */
int fairness_join(struct fairness *t, struct entry *ent, uint64_t key);
/* All of ENT's updates are queued. */
void fairness_arrived(struct entry *ent);
/* ENT has no undecided updates left. */
void fairness_leave(struct entry *ent);

/* Makes ENT ready, or not ready any more. ENT is ready if it waits, has
 * arrived, and has names that are up (ref_queue.h). If ENT goes whole, all its
 * names must be up. With goes_first, ENT and its repository come first. Call
 * this function whenever one of these conditions has changed. */
void fairness_refresh(struct entry *ent);

/* Call if ENT has only deletions that may go, while another batch holds
 * deletions of the repository. Until fairness_unpark(), ENT is ready only if
 * updates that do not delete may go. */
void fairness_park(struct entry *ent);
void fairness_unpark(struct repo_queue *q);

/* Returns the repository whose turn it is, and moves it to the end of the
 * round. NULL: nothing is ready. */
struct repo_queue *fairness_next(struct fairness *t);
/* Q could not be served. Q has the next turn again. */
void fairness_again(struct repo_queue *q);
/* Batch B has updates of Q, which writes alone. */
void fairness_hold(struct repo_queue *q, const struct batch *b);
/* The batch is back. Q rests until UNTIL_NS, if that is later than NOW_NS and
 * than its present rest. */
void fairness_let_go(struct repo_queue *q, int64_t until_ns, int64_t now_ns);
void fairness_rest(struct repo_queue *q, int64_t until_ns, int64_t now_ns);
/* Wakes rested queues. Returns the time of the next, or INT64_MAX. */
int64_t fairness_wake(struct fairness *t, int64_t now_ns);
/* Returns the entry whose updates are queued next. Its repository moves to the
 * end of the round. */
struct entry *fairness_next_arriving(struct fairness *t);

#endif
