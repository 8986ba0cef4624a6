/*
 * Requests of an administrator. No request waits for the store, so the loop is
 * never held up. Only the answer of a drain comes later.
 *
 * Happy path:
 *	pause	no batch is begun; batches in work come back, and all other
 *		transactions wait
 *	drain	nothing new is accepted; the answer comes when nothing waits
 *	resume	ends pause and drain
 *	locks	lists the locks that transactions wait for, with the time and
 *		the number of waiters, and the locks of prepared sessions
 *
 * Failure modes:
 *	the deadline passes while paused	busy
 *	a stop while paused	batches begin again, and finish the rest
 *	resume while draining	the waiters for the drain are told
 *	out of memory		refused; the drain goes on
 */
#include <stdio.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/probe.h"
#include "daemon/scheduler/state.h"

void scheduler_pause(struct scheduler *e)
{
	if (e->is_draining)
		return;
	e->is_paused = true;
	store_tell_service(e->store, STORE_PAUSES);
	direct_stop(e);
}

bool scheduler_is_paused(const struct scheduler *e)
{
	return e->is_paused;
}

bool scheduler_is_closed(const struct scheduler *e)
{
	return e->is_closed;
}

static void answer_closers(struct scheduler *e, struct refd_answer *ans)
{
	struct waiter *a;

	while ((a = waiter_pop(&e->closers)) != NULL)
		waiter_answer(&e->waiters, a, ans);
}

void admin_end_pause(struct scheduler *e)
{
	e->nr_pauses += e->is_paused;
	e->is_paused = false;
}

void scheduler_resume(struct scheduler *e)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_ABORTED,
		.text = "it was resumed" };

	admin_end_pause(e);
	e->is_closed = false;
	store_tell_service(e->store,
	    e->is_draining ? STORE_STOPS : STORE_SERVES);
	answer_closers(e, &ans);
}

void scheduler_close(struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg)
{
	struct waiter *a = waiter_add(&e->waiters, fn, arg, req->request_id);

	e->is_closed = true;
	if (a == NULL)
		ask_refuse(req, BUSY(MEMORY), fn, arg);
	else
		waiter_push(&e->closers, a);
}

void admin_look_drained(struct scheduler *e)
{
	struct refd_pair pair = { "drained", "yes" };
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.pairs = &pair,
		.nr_pairs = 1 };

	if (e->is_closed && e->closers != NULL && e->table.head == NULL &&
	    e->nr_batches == 0)
		answer_closers(e, &ans);
}

/* ---- locks ---- */

struct locks {
	const struct scheduler *e;
	int64_t now_ns;
	scheduler_lock_fn *fn;
	void *arg;
	size_t left;
};

static void tell(struct locks *l, const struct entry *ent, const char *path,
    enum scheduler_lock_kind kind, int64_t since_ns)
{
	const struct txn *txn = ent->txn;
	const struct scheduler_lock lock = { .kind = kind,
		.repo = store_repo_path(txn->repo),
		.path = path,
		.age_ns = l->now_ns - since_ns,
		.txid = &ent->key.txid,
		.uid = txn->peer.uid,
		.pid = txn->peer.pid };

	l->left--;
	l->fn(l->arg, &lock);
}

/* While a batch holds ENT, the store owns its updates, so only the members that
 * belong to the scheduler may be read. */
static void tell_waiting(struct locks *l, const struct entry *ent)
{
	const struct txn_update *u;
	const char *path;
	size_t i;

	for (i = 0; i < ent->txn->nr_updates && l->left > 0; i++) {
		u = &ent->txn->updates[i];
		if (u->locked_since_ns == 0)
			continue;
		path = u->ask->name;
		if (entry_is_lent(ent) ? !ref_queue_is_held(u) :
					 u->status != REFD_PENDING)
			continue;
		if (!entry_is_lent(ent) && u->locked_path != NULL)
			path = u->locked_path;
		tell(l, ent, path, SCHEDULER_LOCK_WAITS, u->locked_since_ns);
	}
}

static void tell_held(struct locks *l, const struct entry *ent)
{
	const struct txn_update *u;
	size_t i;

	for (i = 0; i < ent->txn->nr_updates && l->left > 0; i++) {
		u = &ent->txn->updates[i];
		if (u->status == REFD_PENDING)
			tell(l, ent,
			    u->final_name != NULL ? u->final_name :
						    u->ask->name,
			    SCHEDULER_LOCK_HELD, ent->prepared_ns);
	}
}

void scheduler_locks(const struct scheduler *e, int64_t now_ns,
    scheduler_lock_fn *fn, void *arg)
{
	struct locks l = { e, now_ns, fn, arg, SCHEDULER_LOCKS_MAX };
	const struct entry *ent;

	for (ent = e->table.head; ent != NULL; ent = ent->hh.next) {
		/* The store owns the whole transaction during admission, so
		 * nothing of it may be read. */
		if (entry_is_admitting(ent) || ent->txn->repo == NULL)
			continue;
		if (ent->state == ENTRY_PREPARED)
			tell_held(&l, ent);
		else
			tell_waiting(&l, ent);
	}
}

/* ---- numbers ---- */

struct measure *scheduler_measure(struct scheduler *e)
{
	return &e->measure;
}

const struct busy *scheduler_busy_repos(const struct scheduler *e)
{
	return &e->repos;
}

const struct busy *scheduler_busy_clients(const struct scheduler *e)
{
	return &e->clients;
}

struct slow *scheduler_slow(struct scheduler *e)
{
	return &e->slow;
}

void scheduler_sent(struct scheduler *e, int64_t now_ns)
{
	measure_sent(&e->measure, now_ns);
	slow_sent(&e->slow, now_ns);
}

/* Without snprintf(), for speed: called for each transaction. */
static size_t put_number(char *to, uint32_t number)
{
	char digits[10];
	size_t nr = 0, i;

	do
		digits[nr++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	for (i = 0; i < nr; i++)
		to[i] = digits[nr - 1 - i];
	to[nr] = '\0';
	return nr;
}

/* The account, and the person named by the programs around the client. */
static void name_client(const struct txn *txn, char name[BUSY_NAME])
{
	const char *person =
	    refd_identity_person(txn->req.identities, txn->req.nr_identities);
	size_t len = put_number(name, txn->peer.uid);

	if (person != NULL)
		snprintf(name + len, BUSY_NAME - len, " %s", person);
}

void admin_count(struct scheduler *e, const struct entry *ent,
    enum refd_outcome outcome)
{
	const struct txn *txn = ent->txn;
	const char *repo = txn->req.git_dir;
	char client[BUSY_NAME];

	if (txn->repo != NULL)
		repo = store_repo_path(txn->repo);
	PROBE_STAGES(&txn->req.txid, txn->times.barrier_ns, txn->times.lock_ns,
	    txn->times.flush_ns, txn->times.publish_ns);
	PROBE_ANSWER(&txn->req.txid, txn->repo_id, txn->nr_updates,
	    txn->nr_of[REFD_OK], e->turn_ns - txn->times.arrived_ns);
	measure_txn(&e->measure, txn, e->turn_ns);
	slow_look(&e->slow, txn, repo, outcome, e->turn_ns, e->wall_ms);
	busy_count(&e->repos, repo, txn->nr_updates, e->turn_ns);
	name_client(txn, client);
	busy_count(&e->clients, client, txn->nr_updates, e->turn_ns);
}

void scheduler_stats(const struct scheduler *e, struct scheduler_stats *stats)
{
	const size_t *nr = e->table.nr_in;
	const struct entry *direct = e->direct.entry;
	const size_t applied = direct != NULL && direct_is_applied(e, direct);

	*stats = e->stats;
	stats->seen = e->looks.nr_seen;
	stats->in_store = nr[ENTRY_IN_BATCH] + applied;
	stats->prepared = nr[ENTRY_PREPARED];
	stats->waiting = nr[ENTRY_WAITING] + nr[ENTRY_ADMITTING] +
	    nr[ENTRY_ENDING] + nr[ENTRY_DIRECT] - applied;
}
