/*
 * Between the files of this directory. Private to them.
 */
#ifndef STORE_BARRIER_INTERNAL_H
#define STORE_BARRIER_INTERNAL_H

#include "daemon/store/barrier/barriers.h"

/* A transaction of a batch. While the batch's disk hangs, the transaction may
 * be given up and freed. So the batch reads only this structure, and accesses
 * TXN only under the barriers' mutex. */
struct barrier_waiter {
	struct txn *txn;   /* NULL: given up */
	struct repo *repo; /* a reference */
	uint8_t fanout;    /* txn_fanout() */
	int err;           /* negative errno of a refusal; 0: not refused */
	char *why;         /* reason of a refusal, owned; NULL: out of memory */
};

struct need;

/* The transactions of one file system, served together. */
struct barrier_batch {
	struct barriers *barriers;
	const struct store_parts *cfg; /* of BARRIERS */
	struct need *needs;
	struct barrier_waiter *waiters; /* owned array */
	size_t nr_waiters;
	struct barrier_waiter *waiter; /* current in the walk */
	uint64_t syncs, fsyncs;
	struct barrier_batch *next; /* in struct barriers */
};

/* barrier.c: the limit for objects_walk(); untrusted files are never old. */
int64_t barrier_limit(const struct store_parts *cfg, int fd,
    const struct sys_stat *st);
/* barrier.c: may the file shallow of REPO be in memory only? */
bool barrier_is_shallow_new(const struct store_parts *cfg,
    const struct repo *repo);
/* barrier_batch.c: makes the objects and new repositories of B's transactions
 * durable. DONE gets the transactions, except those given up. Blocks. */
void barrier_serve(struct barrier_batch *b, struct txn_fifo *done);

#endif
