/*
 * Applies a batch, that is, takes the locks, commits, publishes and decides.
 *
 * Several threads may apply different batches at once. Batches with a common
 * ref only lose time, because the second finds the locks of the first. Blocks
 * for as long as the disk does. Nothing is logged, because each update stores
 * its own failure. After the call each update is decided, or given back with
 * the reason in update->again; those of a prepared session are neither.
 */
#ifndef STORE_APPLY_H
#define STORE_APPLY_H

#include <stdatomic.h>

#include "daemon/store/journal/journal.h"
#include "daemon/store/refs/flush.h"
#include "daemon/store/replica.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/txn.h"

/* The maximum number of batches at a time with much work in the files of one
 * repository (apply_take_large()): that rewrite a packed-refs of more than
 * PACKED_LARGE bytes, or read much of reftables. A user has at most one such
 * batch. */
#define APPLY_LARGE_MAX 4

struct applier {
	const struct sys *sys;
	struct repos *repos;
	struct journal *journal;
	enum refd_durability durability; /* the weakest mode of a request */
	struct replica *replica;
	struct flusher *flusher; /* or NULL */
	/* Non-atomic updates that are not locked after this time are given
	 * back; after a quarter of this time, if another batch waits. */
	int64_t prepare_max_ns;
	/* A transaction that creates at least this many refs may write them to
	 * packed-refs (packed_pays). */
	size_t packed_least;
	atomic_uint_fast64_t next_token;
	atomic_uint_fast64_t large_users[APPLY_LARGE_MAX]; /* uid + 1, or 0 */
	/*
	 * pipeline_commit(): commits ROWS to the log. With FLUSH the rows are
	 * durable on return. After a failed sync, the callee first reopens the
	 * journal. 0; negative errno: definitely not committed;
	 * JOURNAL_UNKNOWN.
	 */
	int (*commit)(void *arg, struct journal_row *rows, size_t nr,
	    bool flush);
	/* batch_prepared() of pipeline.c: the first pass of B has all locks it
	 * can get, so other batches need not wait for B any more. A later pass
	 * of B, for packed-refs, still takes locks. Called at most once per
	 * batch. May be NULL. */
	void (*prepared)(void *arg, struct batch *b);
	/* is_awaited() of pipeline.c: does a batch wait until another batch has
	 * its locks? */
	bool (*is_awaited)(void *arg);
	/* A reflog line could not be written and was recorded as missing. */
	void (*defer_line)(void *arg, const struct repo *repo);
	/* Batch TOKEN has ended and left locks or staged values in REPO. The
	 * callee removes these files later, because the batch could not. */
	void (*left)(void *arg, const struct repo *repo, uint64_t token);
	/* Update INDEX of row LSN is answered `unknown`, and its locks stay.
	 * Recovery publishes or aborts the update, so the row must stay. May be
	 * NULL. */
	void (*defer_update)(void *arg, uint64_t lsn, uint32_t index);
	void *arg;
};

void apply_batch(struct applier *ap, struct batch *b);

#endif
