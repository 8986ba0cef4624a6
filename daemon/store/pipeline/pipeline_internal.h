/*
 * The state of the pipeline, private to pipeline.c and to tests.
 */
#ifndef STORE_PIPELINE_INTERNAL_H
#define STORE_PIPELINE_INTERNAL_H

#include <pthread.h>

#include "daemon/base/mutex.h"
#include "daemon/store/batch/apply.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/stages.h"

#define PIPELINE_SLOTS (PIPELINE_BATCHES + 2)

/* A batch in work. All zero: none. */
struct commit_slot {
	const struct batch *batch;
	uint64_t floor;        /* no record of BATCH gets a lower LSN */
	uint64_t shared_floor; /* the same, for the LSN of other machines */
	struct stage_work work;
	bool has_more;    /* repositories besides the one in WORK */
	bool is_prepared; /* WORK is the stage commit, not prepare */
};

struct pipeline {
	const struct store_parts *cfg;
	struct journal *journal; /* of cfg.log */
	struct applier applier;

	struct work_source source; /* apply_next(): a batch */

	/* All members below: under MUTEX. */
	struct mutex mutex;
	pthread_cond_t gathered; /* NR_LOCKING is 0 */
	struct batch_fifo to_apply;
	/* Batches that do not have their locks yet. NR_PREPARING counts all
	 * that were handed over, and NR_LOCKING counts those that a worker
	 * prepares. Both numbers fall in batch_prepared(), which apply_some()
	 * causes right after pass_prepare(), or apply_take_large() before.
	 * end_batch() makes up for a batch that ends without this call,
	 * because the batch prepares a session, or had no memory for a pass.
	 * gather() waits until NR_LOCKING is 0. */
	size_t nr_preparing, nr_locking;
	/* Batches that wait for NR_LOCKING, and whether the scheduler waits
	 * until store_takes() is true. */
	size_t nr_gathering;
	bool has_refused;
	uint64_t nr_ended;
	/* The last slots are for pipeline_apply_here() and
	 * pipeline_apply_rows(). */
	struct commit_slot slots[PIPELINE_SLOTS];
};

/* applier.commit; ARG is the pipeline. */
int pipeline_commit(void *arg, struct journal_row *rows, size_t nr, bool flush);

#endif
