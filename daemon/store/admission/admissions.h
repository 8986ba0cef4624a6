/*
 * Admissions: the threads that admit transactions, look up transaction ids and
 * retry deferred redo. They are the only readers of objects, and they open and
 * close the repositories.
 *
 *	admissions_admit() -> id -> queue of the path -> turn of the repository
 *	    -> completions, or the barrier and then completions
 *	admissions_look_up() -> journal -> completions
 *
 * The struct has a mutex and a condition of its own. Of other locks, only the
 * innermost mutex of struct deferred is taken under the mutex.
 *
 * Any thread may call each function, except admissions_new(), _start(), _stop()
 * and _free(), which are for the thread that opens and closes the store. Only
 * admissions_stop() blocks for longer than a mutex.
 */
#ifndef STORE_ADMISSIONS_H
#define STORE_ADMISSIONS_H

#include "daemon/store/barrier.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/repos/rights.h"

struct admissions;

/* All pointers are borrowed until admissions_free(). */
struct admissions_config {
	const struct sys *sys;
	const char
	    *state_dir; /* for reports: look-ups read the journal there */
	struct journal *journal;
	struct repos *repos;
	struct rights *rights;
	struct deferred *deferred;
	struct barriers *barriers;
	struct completions *completions;
	enum refd_durability durability; /* of paths without a rule */
};

/* NULL: out of memory. */
struct admissions *admissions_new(const struct admissions_config *cfg);
/* Once. 0 or -EAGAIN. After both results admissions_stop() ends the threads. */
int admissions_start(struct admissions *a);
/* Waits until the threads have done all work that was handed over. */
void admissions_stop(struct admissions *a);
/* NULL is fine. The threads do not run. */
void admissions_free(struct admissions *a);

/* TXN comes back once, in the completions. The transactions of a repository
 * come back in the order in which they were handed over. */
void admissions_admit(struct admissions *a, struct txn *txn);
/* TXN, which is being admitted or waits at the barrier, comes back as soon as
 * possible (store_give_up()). */
void admissions_give_up(struct admissions *a, struct txn *txn);
/* Frees TXN. */
void admissions_discard(struct admissions *a, struct txn *txn);
/* QUERY comes back once, in the completions. The journal is read before any
 * transaction that is handed over later is admitted, since the rows of such a
 * transaction may not be durable yet. */
void admissions_look_up(struct admissions *a, struct store_query *query);
/* After deferred_begin_turn(): a thread takes the turn. */
void admissions_wake(struct admissions *a);

/* Adds the current work to the stages LOOKUP and ADMISSION of PROGRESS
 * (store_progress()). */
void admissions_progress(struct admissions *a, struct store_progress *progress,
    int64_t before_ns);

#endif
