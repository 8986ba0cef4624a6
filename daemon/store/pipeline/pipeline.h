/*
 * The pipeline: a worker per batch applies the batch (batch/apply.h). One
 * struct pipeline belongs to one store.
 *
 *	store_apply() -> queue -> a worker -> completions
 *
 * A batch first prepares, that is, takes its locks. Preparing needs a
 * processor, so few batches prepare at once, and the scheduler asks
 * store_takes() before it forms the next batch. After that the batches wait
 * for the log. One flush serves all rows before it, so many batches wait for
 * the same flush (pipeline_append()).
 *
 * Every batch in work has a floor, below which no record of the batch gets an
 * LSN. The floor is set before the batch can append a record, and is cleared
 * when all records of the batch are published, aborted or deferred. So history
 * may show the records below the lowest floor, and the checkpoint may forget
 * these records unless they are deferred.
 *
 * Threads and locks: any thread may call every function, except pipeline_new()
 * and pipeline_free(), which are for the thread that opens and closes the
 * store. Only pipeline_apply_here() and pipeline_apply_rows() block for longer
 * than the mutex of the struct, because they apply a batch. Under this mutex
 * only locks of the journal and of the pool are taken, and no callback is
 * called.
 *
 * A batch belongs to the pipeline from store_apply() until it is in the
 * completions.
 *
 * Failures: every update holds its result (apply.h). A hand-over allocates
 * nothing, so it cannot fail.
 */
#ifndef STORE_PIPELINE_H
#define STORE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/workers.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/journal/commit_log.h"
#include "daemon/store/parts.h"
#include "daemon/store/replica.h"
#include "daemon/store/repos/repo.h"

/* The maximum of batches at a time, the maximum of batches that prepare, and
 * the number of workers that other work leaves to batches. */
#define PIPELINE_BATCHES   14
#define PIPELINE_PREPARERS 2
#define PIPELINE_RESERVED  3

struct pipeline;

/* Before workers_start(). CFG is borrowed until pipeline_free(). NULL: out of
 * memory. */
struct pipeline *pipeline_new(const struct store_parts *cfg);
/* P may be NULL. After workers_stop(), which waits until all batches have come
 * back. */
void pipeline_free(struct pipeline *p);

/* As store_apply(), but the calling worker applies B, so that a small
 * transaction passes the loop only at the start and at the end. */
void pipeline_apply_here(struct pipeline *p, struct batch *b);
/* The calling thread applies a batch of SLICES, whose transactions are the
 * store's own. All are applied in this order, or none, because the log takes no
 * row of another machine before the row that precedes it. For a thread of the
 * replica. */
void pipeline_apply_rows(struct pipeline *p, struct txn_slice *slices,
    size_t nr);
/* Appends ROWS to the log of this machine, and waits, as applier.commit. */
int pipeline_append(struct replica *replica, struct journal_row *rows,
    size_t nr, bool flush);
/* The number of a batch or a retry, unique for the life of the journal. */
uint64_t pipeline_next_token(struct pipeline *p);

/* The highest LSN up to which every batch has ended and every row is durable
 * or rejected. */
uint64_t pipeline_visible_lsn(struct pipeline *p);
/* The highest LSN up to which every batch has ended. Call deferred_lowest_lsn()
 * after this function, because a batch notes its deferred updates before it
 * ends. */
uint64_t pipeline_ended_lsn(struct pipeline *p);
/* How many batches have ended. */
uint64_t pipeline_batches(struct pipeline *p);
/* Adds the batches in work to PROGRESS (store_progress()). */
void pipeline_progress(struct pipeline *p, int64_t before_ns,
    struct store_progress progress[STORE_STAGES]);

#endif
