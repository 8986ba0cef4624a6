/*
 * Decides the order of admission: a queue for each path of a repository, in
 * order of arrival, and workers that take the queues in turn.
 *
 * The disk of a repository may hang, and the owner may make the files slow on
 * purpose, so limits protect all other users:
 *	one worker at most is at work in a repository
 *	ADMISSION_PER_PLACE at most on one file system, and as many open
 *		repositories below one root that were not open before
 *	all but one at most for one user
 *	users take turns, and the queues of a user take turns; a turn is a
 *		bounded piece of work (admission_turn.c)
 * A queue counts for the user of its first transaction.
 *
 * Call all functions with the mutex of struct admissions held. Nothing blocks.
 */
#ifndef STORE_ADMISSION_QUEUES_H
#define STORE_ADMISSION_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/hash.h"
#include "daemon/store/txn.h"

/* In this order: the maximum of workers that admit at a time; the number of
 * workers that other work leaves to admissions; the maximum of workers for
 * paths that may hang together. ADMISSION_PER_PLACE must be smaller than the
 * others, because a hanging disk would otherwise stop all admissions. */
#define ADMISSION_WORKERS   6
#define ADMISSION_RESERVED  3
#define ADMISSION_PER_PLACE 2

/* The waiting transactions of a path. In at most one list: ready or waiting. */
struct admission_queue {
	char *git_dir;      /* owned */
	struct txn *txns;   /* a list, by next and prev */
	const void *place;  /* equal if both may hang together; only compared */
	uint32_t uid;       /* of the first transaction */
	uint64_t waits_for; /* a repository claimed by another worker */
	bool is_worked_on;
	struct admission_queue *next, *prev;
	UT_hash_handle hh;
};

/* The current work of a worker. */
struct admission_slot {
	struct admission_queue *queue; /* or NULL */
	uint64_t repo;                 /* the claimed repository; 0: none */
	const char *path;              /* borrowed; NULL: idle */
	int64_t since_ns;              /* monotonic */
};

struct admission_queues {
	struct admission_queue *by_path; /* all queues, owned */
	struct admission_queue *ready, *waiting;
	struct admission_slot slots[ADMISSION_WORKERS];
	uint64_t nr_put;
};

/* Queues TXN behind all earlier transactions of its path. PLACE is for a path
 * without a queue. -ENOMEM. */
int admission_queues_put(struct admission_queues *a, struct txn *txn,
    const void *place);
/* Removes TXN from its queue, if queued. */
void admission_queues_remove(struct admission_queues *a, struct txn *txn);

/* Hands the next queue to worker SLOT until admission_queues_end(). NULL: no
 * queue is ready and permitted. */
struct admission_queue *admission_queues_begin(struct admission_queues *a,
    size_t slot, int64_t now_ns);
/* The first transaction of SLOT's queue, if put before transaction number
 * BEFORE. */
struct txn *admission_queues_take(struct admission_queues *a, size_t slot,
    uint64_t before);
/* TXN continues with the next turn. */
void admission_queues_put_back(struct admission_queues *a, size_t slot,
    struct txn *txn);
/* SLOT begins to work in REPO. False: a different worker is in REPO, so the
 * queue of SLOT waits. */
bool admission_queues_claim(struct admission_queues *a, size_t slot,
    uint64_t repo);
void admission_queues_end(struct admission_queues *a, size_t slot);
/* Work without a queue, at PATH. */
void admission_queues_begin_other(struct admission_queues *a, size_t slot,
    const char *path, int64_t now_ns);

/* Is there work for an idle worker? */
bool admission_queues_has_work(const struct admission_queues *a);

#endif
