/*
 * The object barrier (barrier.c): transactions wait until their objects are
 * durable, and workers sync the file systems.
 *
 * Lock: MUTEX, the mutex of struct barriers. No function returns with MUTEX
 * held. The loop takes MUTEX, so no file system call is made with MUTEX held.
 * The order of all locks is in docs/threads.md.
 */
#ifndef STORE_BARRIERS_H
#define STORE_BARRIERS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/mutex.h"
#include "daemon/base/workers.h"
#include "daemon/store/completions.h"
#include "daemon/store/objects/new_objects.h"
#include "daemon/store/parts.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/sync_failures/sync_failures.h"

struct barrier_batch;

/* The maximum of workers at the barrier, and the number of workers that other
 * work leaves to the barrier. One file system gets at most BARRIERS_OF_FS,
 * because the disk may hang. */
#define BARRIERS_WORKERS  4
#define BARRIERS_RESERVED 2
#define BARRIERS_OF_FS    2

/* The current work of a worker. */
struct barrier_slot {
	const struct fs *fs; /* NULL: idle */
	const char *path;    /* of a repository there; borrowed */
	int64_t since_ns;    /* monotonic */
};

struct barriers {
	const struct store_parts *cfg;
	struct work_source source; /* a batch of one file system */

	/* All members below: under MUTEX. The same holds for is_at_barrier and
	 * waiter of a transaction and for waiting_barrier of a repository. */
	struct mutex mutex;
	struct txn_fifo waiting;
	struct barrier_slot slots[BARRIERS_WORKERS];
	struct barrier_batch *batches;
	uint64_t nr_served, nr_syncs, nr_fsyncs, nr_copied;
};

/* Before workers_start(), and after workers_stop(), which waits until all
 * waiting transactions are served. CFG is borrowed. */
void barriers_init(struct barriers *b, const struct store_parts *cfg);
void barriers_done(struct barriers *b);

/* Admission thread: all of TXNS wait for their objects. TXNS is empty then. */
void barriers_put(struct barriers *b, struct txn_fifo *txns);
/* Admission thread of REPO: do transactions of REPO wait? False: all earlier
 * transactions of REPO are in the completion queue. */
bool barriers_has(struct barriers *b, const struct repo *repo);
/* Loop thread: TXN comes back at once, if TXN waits here. */
void barriers_give_up(struct barriers *b, struct txn *txn);
/* Any thread. */
void barriers_count(struct barriers *b, struct store_stats *stats);
void barriers_progress(struct barriers *b, struct store_progress *progress,
    int64_t before_ns);

/* Admission thread: are all objects of REPO known to be durable? FIRST is as in
 * struct objects_walk. */
bool barrier_is_clean(struct barriers *b, struct repo *repo, uint8_t first);
/* Admission thread: if the objects of REPO are not clean, copies the new
 * objects for the record of a transaction. True: the transaction need not wait,
 * because its record will have *OBJECTS (owned; NULL: no new objects). False:
 * the barrier must serve the transaction. Blocks on the files. */
bool barrier_copy(struct barriers *b, struct repo *repo,
    struct new_objects **objects);
/* Admission thread: are the id of REPO and its row in the journal durable? All
 * records of REPO depend on both, because recovery finds the repository by path
 * and id. */
bool barrier_is_settled(struct barriers *b, struct repo *repo);
/* Called after a sync of the file system of REPO, which makes the id durable.
 * Flushes the row of REPO in the journal. Then both are on disk. 0, or negative
 * errno: REPO is doomed. */
int barrier_settle(const struct store_parts *cfg, struct repo *repo);

#endif
