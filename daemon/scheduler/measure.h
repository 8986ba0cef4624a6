/*
 * What the scheduler has counted and timed. All of it is the loop thread's:
 * times that other threads took come back with their batches and
 * transactions, so that counting costs an addition and shares nothing.
 *
 * Times are in microseconds where a histogram has them, else nanoseconds
 * (monotonic).
 */
#ifndef SCHEDULER_MEASURE_H
#define SCHEDULER_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/histogram.h"
#include "daemon/store/txn.h"

/* What is told of the last moments covers one to two of these. */
#define MEASURE_PERIOD_NS (5 * 1000000000LL)

/* Of the last moments, for those who watch. */
struct measure_period {
	uint64_t batches, transactions, refs;
	struct histogram flush, total, batch_txns;
};

struct measure {
	uint64_t closed[BATCH_CLOSES];
	uint64_t refs[REFD_STATUSES]; /* by what became of them */

	/* Of batches. */
	struct histogram batch_txns, batch_refs;
	struct histogram lock, flush, publish;
	struct histogram reply; /* from done to what the socket took */
	/* Of transactions. */
	struct histogram admit, barrier, queue, total;

	struct measure_period now, before;
	int64_t period_ns; /* when NOW began; 0: never */

	/* Those whose answers are on their way. */
	int64_t done_ns[64];
	size_t nr_done;
};

/* A batch is back: NR_LIVE refs of it were tried, and some of them given
 * back for want of time. */
void measure_batch(struct measure *m, struct batch *b, size_t nr_live,
    bool gave_back, int64_t now_ns);
/* TXN is decided. */
void measure_txn(struct measure *m, const struct txn *txn, int64_t now_ns);
/* What was answered so far is with the kernel. */
void measure_sent(struct measure *m, int64_t now_ns);

/* How long TXN waited for others, which is what nothing else explains. */
int64_t measure_queue_ns(const struct txn_times *times, int64_t end_ns);

/* What there was in the last moments, over how long. */
void measure_recent(struct measure *m, int64_t now_ns,
    struct measure_period *recent, int64_t *span_ns);

const char *measure_close_name(enum batch_close closed);

#endif
