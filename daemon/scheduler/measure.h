/*
 * Counters and times of the scheduler. Only the loop thread uses them, and
 * times from other threads arrive with batches and transactions, so counting
 * needs no locks.
 *
 * Histograms use microseconds; all other times are nanoseconds (monotonic).
 */
#ifndef SCHEDULER_MEASURE_H
#define SCHEDULER_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/histogram.h"
#include "daemon/store/txn.h"

/* Recent figures cover between one and two periods. */
#define MEASURE_PERIOD_NS (5 * 1000000000LL)

/* Figures of one period, for live displays. */
struct measure_period {
	uint64_t batches, transactions, refs;
	uint64_t nospace, io; /* refs that failed by these statuses */
	uint64_t disk_errors; /* as of txn_disk_errors() */
	struct histogram flush, total, batch_txns;
};

/* Any user can have any number of broken repositories, so only a few are kept,
 * each with the latest failure. */
#define MEASURE_FAILED      8
#define MEASURE_FAILED_TEXT 512 /* longer texts are cut */

struct measure_failed {
	int64_t at_ns; /* 0: not used */
	uint32_t uid;  /* of the client */
	char repo[MEASURE_FAILED_TEXT], ref[MEASURE_FAILED_TEXT],
	    why[MEASURE_FAILED_TEXT];
};

struct measure {
	uint64_t closed[BATCH_CLOSES];
	uint64_t refs[REFD_STATUSES]; /* by status */

	/* Per batch. */
	struct histogram batch_txns, batch_refs;
	struct histogram lock, flush, publish;
	struct histogram reply; /* from done until the socket took the answer */
	/* Per transaction. */
	struct histogram admit, barrier, queue, total;

	struct measure_period now, before;
	int64_t period_ns;    /* when NOW began; 0: never */
	uint64_t disk_errors; /* so many had been counted when NOW began */

	/* Repositories with refs that were answered `io`, the newest first. */
	struct measure_failed failed[MEASURE_FAILED];

	/* Times of batches whose answers are not sent yet. */
	int64_t done_ns[64];
	size_t nr_done;
};

/* Batch B is back: NR_LIVE of its refs were tried. GAVE_BACK: the store gave
 * back some refs for want of time. */
void measure_batch(struct measure *m, struct batch *b, size_t nr_live,
    bool gave_back, int64_t now_ns);
/* TXN is decided. */
void measure_txn(struct measure *m, const struct txn *txn, int64_t now_ns);
/* A ref REF of REPO was answered `io`. WHY may be NULL. */
void measure_failed(struct measure *m, const char *repo, const char *ref,
    const char *why, uint32_t uid, int64_t now_ns);
/* All answers so far are in the kernel. */
void measure_sent(struct measure *m, int64_t now_ns);

/* How long TXN waited for other transactions: the time that no step
 * explains. */
int64_t measure_queue_ns(const struct txn_times *times, int64_t end_ns);

/* The figures of the last one to two periods; *SPAN_NS is the covered time. */
void measure_recent(struct measure *m, int64_t now_ns,
    struct measure_period *recent, int64_t *span_ns);

const char *measure_close_name(enum batch_close closed);

#endif
