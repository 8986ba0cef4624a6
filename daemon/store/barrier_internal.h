/*
 * Between barrier.c, barrier_batch.c and barrier_threads.c. Private to them.
 */
#ifndef STORE_BARRIER_INTERNAL_H
#define STORE_BARRIER_INTERNAL_H

#include "daemon/store/store_internal.h"

/* A transaction of a batch. It may be given up, and go, while the batch's disk
 * does not come back; so the batch looks at this alone, and at TXN only under
 * the store's mutex. */
struct barrier_waiter {
	struct txn *txn;   /* NULL: given up */
	struct repo *repo; /* a reference */
	int err;
	char *why; /* owned; refused. NULL: it is not */
};

struct need;

/* The transactions of one file system, served together. */
struct barrier_batch {
	struct store *store;
	struct need *needs;
	struct barrier_waiter *waiters; /* owned array */
	size_t nr_waiters;
	struct barrier_waiter *waiter; /* whose stores are looked at */
	uint64_t syncs, fsyncs;
	struct barrier_batch *next; /* in the store's list */
};

/* barrier.c: objects_walk's; what nobody believes is never old. */
int64_t barrier_limit(struct store *s, int fd, const struct sys_stat *st);
/* barrier_batch.c: makes durable what B's transactions need, and gives them
 * back. Blocks. */
void barrier_serve(struct barrier_batch *b);

#endif
