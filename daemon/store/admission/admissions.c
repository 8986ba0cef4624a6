/*
 * The work of admission, and its queues.
 *
 * The happy path of a transaction:
 *	sort	by one worker at a time: if the journal knows the id, the first
 *		outcome is the answer. Nothing is read if the filter of recent
 *		ids has never seen the id. Otherwise the rows of the id are read
 *		in the order of their LSNs, and a later row replaces the result
 *		of an earlier row. A new transaction joins the queue of its path
 *		(admission_queues.c)
 *	turn	of that queue, by any worker (admission_turn.c)
 *	back	to the completions, or to the barrier
 * A query about an id is answered beside, one at a time.
 *
 * Failures cost the transaction (admit.c). It is refused, too, if
 *	another transaction has the id
 *	the id was born in the future	and is in no row: the journal would
 *					have to keep the id until then
 *	the journal can't be read	the answer has nothing of the rows
 *	to the end			already read: an unread row may be an
 *					abort record
 * A transaction that is given up is not begun, or not continued. A disk that
 * hangs keeps one worker for each repository with work on the disk, but two
 * workers at most, so that workers are left for the other disks.
 */
#include "daemon/store/admission/admissions_internal.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/stages.h"

#define REPO_IDLE_NS (60LL * 1000000000)
#define TRIM_NS      (10LL * 1000000000)

/* ---- is the id in the journal? ---- */

static bool refuse(struct txn *txn, enum refd_status status, char *why)
{
	txn->refused = status;
	txn->why = why;
	return true;
}

/* TXN gets the outcome of the first time. */
static void replay(struct txn *txn, const struct refd_answer *first)
{
	const struct refd_result *result;
	struct txn_update *u;
	size_t i;

	for (i = 0; i < txn->nr_updates; i++) {
		u = &txn->updates[i];
		result = &first->results[i];
		if (result->name == NULL)
			continue;
		u->status = result->status;
		u->text = result->text != NULL ? strdup(result->text) : NULL;
		u->has_found = result->has_found;
		u->found = result->found;
		u->recorded = true;
	}
	txn->lsn = first->lsn;
	txn->replayed = true;
	txn_count(txn);
	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status == REFD_PENDING)
			txn_decide(&txn->updates[i], REFD_ABORTED,
			    "the daemon stopped before its turn");
}

/* True: TXN is answered. */
static bool take_first(struct admissions *a, struct txn *txn,
    struct refd_answer *first)
{
	uint64_t digest;
	int r = lookup_outcome(a, &a->reader, txn->peer.uid, first, &digest);

	if (r < 0)
		/* The transaction may have been done before, under this id, so
		 * the outcome is unknown. */
		return refuse(txn, REFD_UNKNOWN,
		    repo_why("can't read the journal: %s", strerror(-r)));
	if (first->arena == NULL && txn->is_from_future)
		return refuse(txn, REFD_BADREQUEST,
		    repo_why("its transaction id was born more than an hour "
			     "after the present: check the clock of the "
			     "client and the clock of the daemon"));
	if (first->arena == NULL)
		return false;
	if (digest != txn->req.digest || first->nr_updates != txn->nr_updates)
		return refuse(txn, REFD_BADREQUEST,
		    repo_why("its transaction id was used before, for another "
			     "transaction"));
	replay(txn, first);
	return true;
}

/* True: TXN is answered. For the worker that set is_sorting. */
static bool is_known(struct admissions *a, struct txn *txn)
{
	struct refd_answer first = { .txid = txn->req.txid };
	bool is_answered;

	/* An id of the future would raise the filter's floor above the ids of
	 * all others. */
	if (!txn->is_from_future &&
	    txid_filter_add(&a->txid_filter, &txn->req.txid))
		return false;
	txn_lay_out(txn);
	is_answered = take_first(a, txn, &first);
	refd_answer_done(&first);
	return is_answered;
}

/* ---- sorting ---- */

/* The longest root above GIT_DIR; NULL: none. */
static const char *root_of(const struct repos *repos, const char *git_dir)
{
	const char *root = NULL;
	size_t i, len, longest = 0;

	for (i = 0; i < repos->nr_roots; i++) {
		len = strlen(repos->roots[i]);
		if (len <= longest ||
		    strncmp(git_dir, repos->roots[i], len) != 0)
			continue;
		longest = len;
		root = repos->roots[i];
	}
	return root;
}

/* Equal for paths that may hang together. */
static const void *place_of(struct repos *repos, const char *git_dir)
{
	const void *place = repos_place(repos, git_dir);

	return place != NULL ? place : root_of(repos, git_dir);
}

/* False: TXN is done. True: TXN is queued, and a worker may have it already. */
static bool put(struct admissions *a, struct txn *txn)
{
	const void *place = place_of(a->cfg->repos, txn->req.git_dir);
	bool is_wanted;
	int r = 0;

	mutex_lock(&a->mutex);
	is_wanted = !atomic_load(&txn->is_given_up);
	if (is_wanted)
		r = admission_queues_put(&a->queues, txn, place);
	mutex_unlock(&a->mutex);
	if (is_wanted && r == 0)
		return true;
	txn_lay_out(txn);
	if (r < 0)
		txn->refused = busy_cause_count(BUSY_MEMORY);
	return false;
}

/* Does the configuration still permit updates? */
static bool may_come(struct admissions *a, struct txn *txn)
{
	if (a->cfg->config->refusal == NULL || txn->is_own || txn->readmitted ||
	    admission_has_no_updates(txn))
		return true;
	txn->why = a->cfg->config->refusal(a->cfg->config->refusal_arg);
	if (txn->why == NULL)
		return true;
	txn_lay_out(txn);
	txn->refused = REFD_DENIED;
	return false;
}

static void sort(struct admissions *a, struct txn_fifo *txns)
{
	struct txn_fifo done = { .head = NULL };
	struct txn *txn;

	while ((txn = txn_fifo_take(txns)) != NULL) {
		if (!may_come(a, txn) ||
		    !REPLICA(a->cfg->replica, admit, txn)) {
			txn_fifo_put(&done, txn);
			continue;
		}
		/* If a transaction is admitted again, the journal may hold
		 * parts of this very transaction, so its id is not looked
		 * up. */
		if (!txn->is_looked_up && !txn->readmitted &&
		    is_known(a, txn)) {
			txn_fifo_put(&done, txn);
			continue;
		}
		txn->is_looked_up = true;
		if (!put(a, txn))
			txn_fifo_put(&done, txn);
	}
	/* No repository was opened, so none goes the direct way. */
	completions_put_txns(a->cfg->completions, &done);
}

/* ---- pieces of work: under MUTEX, which is released meanwhile. False: no such
 * work for this worker. ---- */

static bool sort_some(struct admissions *a)
{
	struct txn_fifo txns = { .head = NULL };

	if (a->is_sorting || a->to_sort.head == NULL)
		return false;
	txn_fifo_move(&txns, &a->to_sort);
	a->is_sorting = true;
	a->sorting_ns = SYS(a->cfg->sys, now_mono);
	mutex_unlock(&a->mutex);
	sort(a, &txns);
	mutex_lock(&a->mutex);
	a->is_sorting = false;
	return true;
}

/* One query, beside the sorting, because the answer may have 100,000 results,
 * and no transaction may wait for it. */
static bool look_up_one(struct admissions *a)
{
	struct store_question *query;

	if (a->is_looking_up || a->to_look_up.head == NULL)
		return false;
	query = question_fifo_take(&a->to_look_up);
	a->is_looking_up = true;
	mutex_unlock(&a->mutex);
	lookup_answer(a, query);
	mutex_lock(&a->mutex);
	a->is_looking_up = false;
	return true;
}

static bool retry_some(struct admission_worker *w)
{
	struct admissions *a = w->admissions;

	if (!deferred_take_turn(a->cfg->deferred))
		return false;
	/* The disk of a retry may hang while other work waits, so another
	 * worker is woken. */
	workers_wake(a->cfg->workers, &a->source);
	mutex_unlock(&a->mutex);
	admission_retry(w);
	mutex_lock(&a->mutex);
	deferred_end_turn(a->cfg->deferred);
	return true;
}

static bool turn_some(struct admission_worker *w)
{
	struct admissions *a = w->admissions;
	uint64_t before = a->queues.nr_put;
	const struct admission_queue *q = admission_queues_begin(&a->queues,
	    w->slot, SYS(a->cfg->sys, now_mono));

	if (q == NULL)
		return false;
	if (admission_queues_has_work(&a->queues))
		workers_wake(a->cfg->workers, &a->source);
	mutex_unlock(&a->mutex);
	admission_turn(w, q, before);
	mutex_lock(&a->mutex);
	return true;
}

static bool discard_some(struct admissions *a)
{
	struct txn_fifo txns = { .head = NULL };
	struct txn *txn;

	if (a->to_discard.head == NULL)
		return false;
	txn_fifo_move(&txns, &a->to_discard);
	mutex_unlock(&a->mutex);
	while ((txn = txn_fifo_take(&txns)) != NULL)
		txn_free(txn);
	mutex_lock(&a->mutex);
	return true;
}

static bool trim_some(struct admissions *a)
{
	int64_t now_ns = SYS(a->cfg->sys, now_mono);

	if (now_ns < a->trim_ns)
		return false;
	a->trim_ns = now_ns + TRIM_NS;
	workers_wake_at(a->cfg->workers, &a->source, a->trim_ns);
	mutex_unlock(&a->mutex);
	repos_trim(a->cfg->repos, REPO_IDLE_NS);
	mutex_lock(&a->mutex);
	return true;
}

/* Is there work that no worker has begun? If the work came during this worker's
 * turn, a worker was woken for the work. Retries go before turns. */
static bool has_more(const struct admissions *a)
{
	return a->to_sort.head != NULL || a->to_look_up.head != NULL ||
	    a->to_discard.head != NULL || admission_queues_has_work(&a->queues);
}

/* work_source.work. The source permits as many workers as the list of idle
 * workers has. */
static bool work_some(void *arg)
{
	struct admissions *a = arg;
	struct admission_worker *w;
	struct batch *direct;
	bool did;

	mutex_lock(&a->mutex);
	w = a->free;
	a->free = w->next;
	did = sort_some(a) || look_up_one(a) || retry_some(w) || turn_some(w) ||
	    discard_some(a) || trim_some(a);
	direct = w->direct;
	w->direct = NULL;
	/* This worker looks for more work only after the batch, so another
	 * worker is woken. */
	if (direct != NULL && has_more(a))
		workers_wake(a->cfg->workers, &a->source);
	w->next = a->free;
	a->free = w;
	mutex_unlock(&a->mutex);
	if (direct != NULL)
		pipeline_apply_here(a->cfg->pipeline, direct);
	return did;
}

/* ---- opening and closing ---- */

void admissions_start(struct admissions *a)
{
	struct refd_txid newest, secret;

	/* Other machines write ids, too, so no id is certainly new there. */
	if (!a->cfg->replica->ops->shares_rows &&
	    lookup_newest(a, &newest) == 0 && refd_txid_make(&secret) == 0)
		txid_filter_begin(&a->txid_filter, &newest, &secret);
	/* Trims, and then once in TRIM_NS. */
	workers_wake(a->cfg->workers, &a->source);
}

struct admissions *admissions_new(const struct store_parts *cfg)
{
	struct admissions *a = calloc(1, sizeof(*a));
	struct admission_worker *w;

	if (a != NULL)
		a->workers = calloc(ADMISSION_WORKERS, sizeof(*a->workers));
	if (a == NULL || a->workers == NULL) {
		free(a);
		return NULL;
	}
	a->cfg = cfg;
	mutex_init(&a->mutex, MUTEX_QUEUES);
	for (w = a->workers; w < a->workers + ADMISSION_WORKERS; w++) {
		w->admissions = a;
		w->cfg = a->cfg;
		w->slot = (size_t)(w - a->workers);
		w->next = a->free;
		a->free = w;
	}
	a->source = (struct work_source){ .work = work_some,
		.arg = a,
		.most = ADMISSION_WORKERS,
		.reserved = ADMISSION_RESERVED };
	workers_add(cfg->workers, &a->source);
	return a;
}

void admissions_free(struct admissions *a)
{
	if (a == NULL)
		return;
	journal_reader_close(a->reader);
	journal_reader_close(a->query_reader);
	txid_filter_done(&a->txid_filter);
	mutex_destroy(&a->mutex);
	free(a->workers);
	free(a);
}

/* ---- hand-over. The pool is woken without MUTEX, which the woken worker needs
 * at once. ---- */

void admissions_admit(struct admissions *a, struct txn_fifo *txns)
{
	struct txn *txn;

	/* An earlier admission counts no more. */
	for (txn = txns->head; txn != NULL; txn = txn->next)
		txn->nr_checked = 0;
	mutex_lock(&a->mutex);
	txn_fifo_move(&a->to_sort, txns);
	mutex_unlock(&a->mutex);
	admissions_wake(a);
}

void store_admit(struct store *store, struct txn *txn)
{
	struct txn_fifo txns = { .head = NULL };

	txn_fifo_put(&txns, txn);
	admissions_admit(store_parts(store)->admissions, &txns);
}

void store_give_up(struct store *store, struct txn *txn)
{
	struct admissions *a = store_parts(store)->admissions;

	mutex_lock(&a->mutex);
	atomic_store(&txn->is_given_up, true);
	if (txn->queue != NULL) {
		admission_queues_remove(&a->queues, txn);
		txn_fifo_put(&a->to_sort, txn);
		workers_wake(a->cfg->workers, &a->source);
	}
	mutex_unlock(&a->mutex);
	barriers_give_up(a->cfg->barriers, txn);
	REPLICA(a->cfg->replica, give_up, txn);
}

void store_discard(struct store *store, struct txn *txn)
{
	struct admissions *a = store_parts(store)->admissions;

	mutex_lock(&a->mutex);
	txn_fifo_put(&a->to_discard, txn);
	mutex_unlock(&a->mutex);
	admissions_wake(a);
}

void admissions_look_up(struct admissions *a, struct store_question *query)
{
	mutex_lock(&a->mutex);
	question_fifo_put(&a->to_look_up, query);
	mutex_unlock(&a->mutex);
	admissions_wake(a);
}

void admissions_wake(struct admissions *a)
{
	workers_wake(a->cfg->workers, &a->source);
}

/* ---- current work ---- */

void admissions_progress(struct admissions *a, struct store_progress *progress,
    int64_t before_ns)
{
	const struct admission_slot *slot = a->queues.slots;
	size_t i;

	progress[STORE_STAGE_ADMISSION].nr_threads =
	    workers_reach(a->cfg->workers, &a->source);
	mutex_lock(&a->mutex);
	if (a->is_sorting)
		stage_add(&progress[STORE_STAGE_LOOKUP],
		    &(struct stage_work){ a->cfg->state_dir, a->sorting_ns },
		    before_ns);
	for (i = 0; i < ADMISSION_WORKERS; i++)
		stage_add(&progress[STORE_STAGE_ADMISSION],
		    &(struct stage_work){ slot[i].path, slot[i].since_ns },
		    before_ns);
	mutex_unlock(&a->mutex);
}
