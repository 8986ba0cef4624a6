/*
 * Between the files of admission. Private to them.
 */
#ifndef STORE_ADMISSIONS_INTERNAL_H
#define STORE_ADMISSIONS_INTERNAL_H

#include "daemon/base/mutex.h"
#include "daemon/store/admission/admission_queues.h"
#include "daemon/store/admission/admissions.h"
#include "daemon/store/admission/admit.h"
#include "daemon/store/admission/txid_filter.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/objects/odb.h"
#include "proto/verb.h"

struct admissions {
	const struct store_parts *cfg;
	struct work_source source; /* work_some(): a piece of work */

	/* Only for the worker that set is_sorting. */
	struct journal_reader *reader; /* NULL: to be opened */
	struct txid_filter txid_filter;
	/* Only for the worker that set is_looking_up. */
	struct journal_reader *query_reader; /* NULL: to be opened */

	/* All members below: under MUTEX. The same holds for queue and nth of a
	 * transaction. */
	struct mutex mutex;
	struct txn_fifo to_sort, to_discard;
	struct question_fifo to_look_up;
	struct admission_queues queues;
	struct admission_worker *free; /* a list of idle workers */
	bool is_sorting;    /* a worker looks ids of transactions up */
	bool is_looking_up; /* a worker answers a query */
	int64_t sorting_ns; /* since when */
	int64_t trim_ns;    /* next time to close idle repositories */
	struct admission_worker *workers; /* ADMISSION_WORKERS, owned */
};

/* An object that was read in the run RUN. */
struct admission_object {
	uint64_t run;
	struct refd_oid oid;
	enum object_type type;
	enum { PEEL_NOT_TRIED, PEELED, PEEL_FAILED } peel;
	struct refd_oid peeled; /* the object that the tag leads to */
};

#define ADMISSION_OBJECTS 256

/* The state of one worker. Only for the thread that took this struct off the
 * list of idle workers. */
struct admission_worker {
	struct admissions *admissions;
	const struct store_parts *cfg;
	size_t slot;
	struct admission_worker *next; /* idle; under MUTEX */
	/* Of this turn: the repository at the path, with a reference, or the
	 * reason why there is none; owned. */
	struct repo *repo;
	enum refd_status status;
	char *why;
	/* Results of this turn. */
	struct txn_fifo admitted, to_barrier;
	struct batch *direct; /* to be applied after the turn; or NULL */

	/* The number of the current run, and the objects read in this run. The
	 * first bytes of an id choose the place. */
	uint64_t run;
	struct admission_object objects[ADMISSION_OBJECTS];
	int objects_err; /* of odb_refresh() */
};

/* ---- admission_turn.c ---- */

/* These three take MUTEX. Worker SLOT works at PATH, without a queue, until
 * admission_end(). PATH is borrowed. */
void admission_begin_at(struct admissions *a, size_t slot, const char *path);
/* Worker SLOT is about to work in REPO. False: another worker does. */
bool admission_claim(struct admissions *a, size_t slot,
    const struct repo *repo);
void admission_end(struct admissions *a, size_t slot);
/* The turn of queue Q: admits transactions that were put before transaction
 * number BEFORE. */
void admission_turn(struct admission_worker *w, const struct admission_queue *q,
    uint64_t before);

/* ---- admission_retry.c ---- */

/* Retries the deferred redo of some repositories. */
void admission_retry(struct admission_worker *w);

/* ---- admit.c ---- */

/* May REPO, which no refd has served, be served for TXN? REPO is open, and has
 * no id. OK, or the status and *WHY (to be freed). */
enum refd_status admit_first(struct admission_worker *w, const struct txn *txn,
    const struct repo *repo, char **why);
/* Checks everything but the objects. False: TXN is refused, so its objects do
 * not matter. */
bool admit_begin(struct admission_worker *w, struct txn *txn);
/* May the objects that TXN names be read, after odb_refresh() returned ERR?
 * False: TXN is refused. */
bool admit_objects_begin(const struct sys *sys, struct txn *txn, int err);
/* Decides U, whose new value is OBJECT. A tag is peeled once. */
void admit_object(struct txn_update *u, enum refd_object_format format,
    struct admission_object *object);
/* TXN has waited since an earlier admission, so git may have pruned objects
 * meanwhile. If the repository lacks an object that was copied at the earlier
 * admission, decides the updates that need objects. */
void admit_copies_exist(struct txn *txn);

/* ---- lookup.c, for the worker that may use the reader ---- */

/* 0, negative errno, or CB's result. CB gets all rows once more if an update
 * that was answered `unknown` has ended meanwhile. */
int lookup_rows(struct admissions *a, struct journal_reader **reader,
    int64_t uid, const struct refd_txid *txid,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);
/*
 * Adds the outcome of the transaction ANS->txid of UID to ANS, whose arena is
 * NULL before, and stays NULL if the journal has no such transaction. Otherwise
 * ANS->results has all updates, in the order of the request. A NULL for a name:
 * no row has the update. *DIGEST is that of the request. 0 or negative errno;
 * refd_answer_done() is needed in any case.
 */
int lookup_outcome(struct admissions *a, struct journal_reader **reader,
    int64_t uid, struct refd_answer *ans, uint64_t *digest);
/* The largest id in the journal. 0 or negative errno. Also before the threads
 * start. */
int lookup_newest(struct admissions *a, struct refd_txid *newest);
/* Fills in the answer of QUERY and gives QUERY back. */
void lookup_answer(struct admissions *a, struct store_question *query);

static inline bool admission_has_no_updates(const struct txn *txn)
{
	return !refd_verb_has_updates(txn->req.verb);
}

/* Does no peer stand behind TXN, so that no rights have to be checked? The
 * daemon itself looks at the repository, or has found the updates of a
 * different writer, or does what another machine did. */
static inline bool admission_is_own(const struct txn *txn)
{
	return txn->req.gate == REFD_GATE_SEEN || txn->is_own;
}

#endif
