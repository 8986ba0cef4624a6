/*
 * The way of a transaction through the states of scheduler.h.
 *
 * Happy path:
 *	submit	a new id is entered in the table and given to the store
 *	arrive	an admitted transaction is queued at its names
 *		(on_admitted.c, ref_queue.c)
 *	batch	whenever the store takes a batch, all runnable updates go into
 *		the batch. Otherwise they gather, and no timer is needed
 *	back	outcomes are answered (on_batch_done.c, decide.c); rejections
 *		go along with the next batch (unrecorded.c)
 *	session	has all its updates in one batch. A prepared session keeps its
 *		locks until it is committed, aborted or given up. It keeps its
 *		names here only if other machines share its rows (session.c)
 *
 * Updates go as soon as the store can prepare them, even a single update,
 * because batches that wait for a flush are flushed together. While the store
 * is busy, further updates gather.
 *
 * Failure modes:
 *	the id is in flight	the same content joins; different content is
 *				refused
 *	the id is too old	unknown; never executed
 *	too many requests wait, or stopping	busy; nothing is kept
 *	... of one user or repository	busy, with a time to retry (quota.c)
 *	out of memory		busy, at submit; later only a name (busy) or a
 *				batch (tried again) needs memory
 *	the deadline passes	updates outside of batches get deadline.
 *				During admission the store is first asked to
 *				give the transaction back: its id may turn out
 *				to be known
 *	the client of a session is gone, or its time is over	the session is
 *				aborted
 */
#include "daemon/scheduler/scheduler.h"

#include <assert.h>
#include <stdlib.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/state.h"

/* Limit for the memory of names, as a multiple of the limit for requests. */
#define REF_QUEUE_FACTOR 4
#define NO_MEMORY_NS     (10 * 1000000)
/* Deadlines that pass in a run. */
#define EXPIRE_AT_ONCE 64

struct scheduler *scheduler_new(const struct scheduler_config *cfg,
    struct store *store)
{
	struct scheduler *e;

	assert(cfg->batch_refs > 0 && store_max_batches(store) > 0);
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	e->cfg = *cfg;
	e->store = store;
	e->batch_refs = cfg->batch_refs;
	e->slow.limit_ns = cfg->slow_ns;
	e->ref_queues.max_bytes = SIZE_MAX;
	if (cfg->max_waiting_bytes < SIZE_MAX / REF_QUEUE_FACTOR)
		e->ref_queues.max_bytes =
		    REF_QUEUE_FACTOR * cfg->max_waiting_bytes;
	return e;
}

void scheduler_set_limits(struct scheduler *e,
    const struct scheduler_limits *limits)
{
	assert(limits->batch_refs > 0);
	e->cfg.batch_refs = e->batch_refs = limits->batch_refs;
	e->cfg.session_ns = limits->session_ns;
	e->slow.limit_ns = limits->slow_ns;
	e->cfg.quotas.of_user = limits->of_user;
}

void scheduler_free(struct scheduler *e)
{
	struct batch *b, *next;
	struct entry *ent;
	struct waiter *a;

	if (e == NULL)
		return;
	assert(
	    e->nr_batches + e->nr_admitting + e->nr_lookups + e->nr_asks == 0);
	for (ent = e->table.head; ent != NULL; ent = ent->hh.next) {
		while ((a = waiter_pop(&ent->waiters)) != NULL)
			waiter_drop(&e->waiters, a);
		if (ent->txn->repo != NULL)
			store_release(e->store, ent->txn->repo);
		ent->txn->repo = NULL;
	}
	while ((a = waiter_pop(&e->closers)) != NULL)
		waiter_drop(&e->waiters, a);
	LL_FOREACH_SAFE(e->returning, b, next)
		batch_free(b);
	slow_done(&e->slow);
	ref_queue_done(&e->ref_queues);
	fairness_done(&e->fairness);
	quota_done(&e->quotas);
	gate_done(&e->gate);
	table_done(&e->table);
	free(e);
}

/* ---- submitting ---- */

/* Gives every ref the status, because a hook reports a status per ref. Very
 * many refs share one answer, because this turn must have an end. But a gate
 * needs the status of each ref. */
static void reject(const struct scheduler *e, struct txn *txn,
    enum refd_status status, const char *text, scheduler_answer_fn *fn,
    void *arg)
{
	struct answer a;
	size_t i;

	if (txn->nr_updates == 0 ||
	    (txn->nr_updates > ANSWER_PART &&
		txn->req.gate == REFD_GATE_NONE)) {
		ask_refuse(&txn->req, status, text, fn, arg);
		return;
	}
	txn_lay_out(txn);
	for (i = 0; i < txn->nr_updates; i++)
		txn_decide(&txn->updates[i], status, NULL);
	a.told = 0;
	do {
		answer_results(&a, txn, e->store, text);
		a.ans.request_id = txn->req.request_id;
		fn(arg, &a.ans);
	} while (a.ans.goes_on);
}

static void join(struct scheduler *e, struct entry *ent, const struct txn *txn,
    scheduler_answer_fn *fn, void *arg)
{
	struct waiter *a;

	if (ent->txn->req.digest != txn->req.digest) {
		ask_refuse(&txn->req, REFD_BADREQUEST,
		    "transaction id was used for other content", fn, arg);
		return;
	}
	ent->session.client = arg;
	a = waiter_add(&e->waiters, fn, arg, txn->req.request_id);
	if (a != NULL && ent->state == ENTRY_PREPARED)
		session_tell(e, ent, a);
	else if (a != NULL && ent->state == ENTRY_DECIDED)
		decide_tell(e, ent, a);
	else if (a != NULL)
		entry_wait(ent, a);
	else
		/* UNKNOWN, because BUSY would say that the transaction was not
		 * accepted. */
		ask_refuse(&txn->req, REFD_UNKNOWN, "out of memory", fn, arg);
}

void scheduler_time(struct scheduler *e, struct entry *ent, bool timed)
{
	if (ent->is_timed == timed)
		return;
	ent->is_timed = timed;
	if (timed)
		heap_add(&e->deadlines, &ent->deadline, ent->deadline_ns);
	else
		heap_remove(&e->deadlines, &ent->deadline);
}

void scheduler_admit(struct scheduler *e, struct entry *ent)
{
	assert(entry_is_admitting(ent));
	e->nr_admitting++;
	ent->nr_pauses = e->nr_pauses;
	scheduler_time(e, ent, true);
	store_admit(e->store, ent->txn);
}

/* False: out of memory, and the caller still owns TXN. */
static bool take_in(struct scheduler *e, struct txn *txn, int64_t now_ns,
    scheduler_answer_fn *fn, void *arg)
{
	int64_t wait_ns = e->cfg.deadline_ns;
	struct waiter *a;
	struct quota *quota;
	struct entry *ent;

	a = waiter_add(&e->waiters, fn, arg, txn->req.request_id);
	if (a == NULL)
		return false;
	quota = quota_take(&e->quotas, QUOTA_USER, txn->peer.uid, txn, arg);
	ent = quota != NULL ? table_add(&e->table, txn) : NULL;
	if (ent == NULL) {
		quota_give(&e->quotas, quota, txn, arg);
		waiter_drop(&e->waiters, a);
		return false;
	}
	ask_note_txn(e, txn);
	ent->quota.of_user = quota;
	ent->quota.sender = arg;
	entry_wait(ent, a);
	if (txn->req.deadline_ms != 0)
		wait_ns = (int64_t)txn->req.deadline_ms * 1000000;
	ent->deadline_ns = now_ns + wait_ns;
	if (txn->req.gate == REFD_GATE_COMMITTED)
		gate_fill(&e->gate, txn);
	txn->is_from_future = ask_is_from_future(e, &txn->req.txid, now_ns);
	txn->times.arrived_ns = txn->times.checked_ns = now_ns;
	e->held_bytes += txn->req.bytes;
	if (entry_is_session(ent))
		session_begin(e, ent, arg);
	/* If nothing else is at work, the store gets ENT with its batch. */
	if (!direct_begin(e, ent, now_ns))
		scheduler_admit(e, ent);
	return true;
}

static bool is_too_much(const struct scheduler *e, const struct txn *txn)
{
	/* A first request may have any size, because otherwise a very large
	 * request could never come in. */
	return e->held_bytes > 0 &&
	    e->held_bytes + txn->req.bytes > e->cfg.max_waiting_bytes;
}

/* Is the share of the user used up? Then the client is told to come again. */
static bool is_put_off(const struct scheduler *e, const struct txn *txn,
    scheduler_answer_fn *fn, void *arg)
{
	struct refd_answer ans;
	uint32_t after_ms = quota_put_off(&e->quotas, &e->cfg.quotas,
	    QUOTA_USER, txn->peer.uid, txn, arg, scheduler_memory(e));

	if (after_ms == 0)
		return false;
	answer_refused(&ans, &txn->req.txid, BUSY(USER));
	ans.retry_after_ms = after_ms;
	ans.request_id = txn->req.request_id;
	fn(arg, &ans);
	return true;
}

/* Phases of a gate that need no store. True: FN has the answer. */
static bool is_gate_told(struct scheduler *e, struct txn *txn,
    scheduler_answer_fn *fn, void *arg)
{
	struct refd_answer pong;

	if (txn->req.gate == REFD_GATE_ABORTED) {
		gate_aborted(&e->gate, txn);
		answer_plain(&pong, REFD_ANSWER_PONG, &txn->req.txid);
		pong.request_id = txn->req.request_id;
		fn(arg, &pong);
		return true;
	}
	if (txn->req.gate != REFD_GATE_COMMITTED ||
	    !gate_is_nested(&e->gate, txn))
		return false;
	reject(e, txn, REFD_ABORTED, "git goes on with the transaction", fn,
	    arg);
	return true;
}

/* False: TXN is refused, and FN has the answer. */
static bool is_taken_in(struct scheduler *e, struct txn *txn, int64_t now_ns,
    scheduler_answer_fn *fn, void *arg)
{
	if (ask_is_expired(e, &txn->req.txid, now_ns))
		reject(e, txn, REFD_UNKNOWN,
		    "its id is older than outcomes are kept; nothing was done "
		    "now",
		    fn, arg);
	else if (e->is_draining)
		reject(e, txn, BUSY(STOPPING), fn, arg);
	else if (e->is_closed)
		reject(e, txn, BUSY(DRAINED), fn, arg);
	else if (is_put_off(e, txn, fn, arg))
		; /* the client has the answer */
	else if (is_too_much(e, txn))
		reject(e, txn, BUSY(WAITING), fn, arg);
	else if (take_in(e, txn, now_ns, fn, arg))
		return true;
	else
		ask_refuse(&txn->req, BUSY(MEMORY), fn, arg);
	return false;
}

void scheduler_submit(struct scheduler *e, struct txn *txn, int64_t now_ns,
    scheduler_answer_fn *fn, void *arg)
{
	struct entry *ent;

	ent = table_find(&e->table, txn->peer.uid, &txn->req.txid);
	if (ent != NULL)
		join(e, ent, txn, fn, arg);
	else if (is_gate_told(e, txn, fn, arg))
		; /* the client has the answer */
	else if (is_taken_in(e, txn, now_ns, fn, arg))
		return;
	else if (txn->req.gate == REFD_GATE_COMMITTED)
		gate_refused(&e->gate, txn);
	txn_free(txn);
}

void scheduler_end_sessions(struct scheduler *e, void *arg)
{
	struct entry *ent, *next;

	DL_FOREACH_SAFE2(e->sessions, ent, next, session.next)
	if (ent->session.client == arg)
		decide_give_up(e, ent, REFD_ABORTED, "its client is gone",
		    e->turn_ns);
}

/* ---- running ---- */

static void reap(struct scheduler *e, int64_t now_ns)
{
	struct store_done done;

	while (store_reap(e->store, &done)) {
		if (done.admitted != NULL)
			on_admitted(e, done.admitted, now_ns);
		else if (done.applied != NULL)
			on_batch_done(e, done.applied, now_ns);
		else
			ask_answered(e, done.answered, now_ns);
	}
}

static void expire(struct scheduler *e, int64_t now_ns)
{
	struct heap_link *l;
	struct entry *ent;
	size_t nr;

	for (nr = 0; nr < EXPIRE_AT_ONCE && (l = e->deadlines.root) != NULL &&
	    l->key <= now_ns;
	    nr++) {
		ent = HEAP_ITEM(l, struct entry, deadline);
		if (ent->state == ENTRY_PREPARED) {
			decide_give_up(e, ent, REFD_DEADLINE,
			    "it was prepared for too long", now_ns);
			continue;
		}
		if (entry_is_admitting(ent)) {
			if (e->is_paused)
				on_admitted_give_up(e, ent, BUSY(PAUSED));
			else
				on_admitted_give_up(e, ent, REFD_DEADLINE,
				    "it was not admitted in time: 'refd "
				    "status' says what is slow");
			continue;
		}
		if (e->is_paused)
			decide_end(e, ent, BUSY(PAUSED), now_ns);
		else
			decide_late(e, ent, now_ns);
	}
}

/* When scheduler_run() must be called again. */
static int64_t next_time(struct scheduler *e, int64_t now_ns, int64_t next_ns)
{
	const int64_t rested_ns = fairness_wake(&e->fairness, now_ns);

	if (ref_queue_next(&e->ref_queues) < next_ns)
		next_ns = ref_queue_next(&e->ref_queues);
	if (rested_ns < next_ns)
		next_ns = rested_ns;
	if (look_next(e, now_ns) < next_ns)
		next_ns = look_next(e, now_ns);
	if (e->fairness.arriving != NULL || e->decided != NULL ||
	    e->decided_large != NULL || e->untold != NULL ||
	    e->untold_large != NULL || e->found != NULL || e->ending != NULL ||
	    e->returning != NULL)
		return now_ns;
	if (e->deadlines.root != NULL && e->deadlines.root->key < next_ns)
		next_ns = e->deadlines.root->key;
	if (e->fairness.ready != NULL && batch_may_go(e) &&
	    now_ns + NO_MEMORY_NS < next_ns)
		next_ns = now_ns + NO_MEMORY_NS;
	return next_ns;
}

int64_t scheduler_run(struct scheduler *e, int64_t now_ns, int64_t wall_ms)
{
	int64_t next_ns;

	/* A callback of the outer scheduler_run() called it again. The outer
	 * call goes on, so the inner call has nothing to do. */
	if (e->is_running)
		return now_ns;
	e->is_running = true;
	e->wall_ms = wall_ms;
	e->turn_ns = now_ns;
	reap(e, now_ns);
	look_run(e, now_ns);
	on_batch_done_go_on(e, now_ns);
	expire(e, now_ns);
	next_ns = session_end_outdated(e, now_ns);
	decide_go_on(e, now_ns);
	ref_queue_wake(&e->ref_queues, now_ns);
	fairness_wake(&e->fairness, now_ns);
	on_admitted_enqueue(e, now_ns);
	batch_hand_over(e);
	decide_answer_some(e);
	/* New unrecorded updates may be due after the answers. */
	batch_hand_over(e);
	admin_look_drained(e);
	e->is_running = false;
	return next_time(e, now_ns, next_ns);
}

/* ---- stopping ---- */

void scheduler_drain(struct scheduler *e)
{
	e->is_draining = true;
	admin_end_pause(e);
	store_tell_service(e->store, STORE_STOPS);
}

void scheduler_hurry(struct scheduler *e)
{
	struct entry *ent, *next;

	scheduler_drain(e);
	HASH_ITER(hh, e->table.head, ent, next) {
		if (entry_is_session(ent))
			decide_give_up(e, ent, REFD_ABORTED,
			    busy_cause_text(BUSY_STOPPING), e->turn_ns);
		else
			decide_give_up(e, ent, BUSY(STOPPING), e->turn_ns);
	}
}

bool scheduler_is_idle(const struct scheduler *e)
{
	return e->table.head == NULL &&
	    e->nr_batches + e->nr_admitting + e->nr_lookups + e->nr_asks == 0;
}
