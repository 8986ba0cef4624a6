/*
 * Admissions: workers admit transactions, look up transaction ids, retry
 * deferred redo, and close idle repositories. Only this work reads objects, and
 * opens and closes repositories.
 *
 *	store_admit() -> id -> queue of the path -> turn of the repository
 *	    -> completions, or the barrier and then completions
 *	    -> a transaction that goes the direct way: the pipeline
 *	admissions_look_up() -> journal -> completions
 *
 * The struct has its own mutex. Of other locks, only the innermost mutexes of
 * struct deferred and of the pool are taken under the mutex.
 *
 * Any thread may call each function, except admissions_new(), _start() and
 * _free(), which are for the thread that opens and closes the store. The loop
 * must not wait for a disk, so no function but admissions_start() blocks for
 * longer than a mutex.
 */
#ifndef STORE_ADMISSIONS_H
#define STORE_ADMISSIONS_H

#include "daemon/base/workers.h"
#include "daemon/store/barrier/barriers.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/parts.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/replica.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/repos/rights.h"

struct admissions;

/* CFG is borrowed until admissions_free(). NULL: out of memory. */
struct admissions *admissions_new(const struct store_parts *cfg);
/* Before workers_start(). Reads the journal. */
void admissions_start(struct admissions *a);
/* NULL is fine. Call after workers_stop(), which waits until all work is
 * done. */
void admissions_free(struct admissions *a);

/* Each of TXNS comes back once, in the completions. The transactions of a
 * repository come back in the order in which they were handed over. TXNS is
 * empty then. */
void admissions_admit(struct admissions *a, struct txn_fifo *txns);
/* QUERY comes back once, in the completions. The rows of a later transaction
 * may not be durable yet, and the answer must not contain them. So the journal
 * is read before any later transaction is admitted. */
void admissions_look_up(struct admissions *a, struct store_question *query);
/* After deferred_begin_turn(): a worker takes the turn. */
void admissions_wake(struct admissions *a);

/* Adds the current work to the stages LOOKUP and ADMISSION of PROGRESS
 * (store_progress()). */
void admissions_progress(struct admissions *a, struct store_progress *progress,
    int64_t before_ns);

#endif
