/*
 * Happy path of a question about a transaction id:
 *	here		answered from the table; a cancel takes effect first
 *	not here	the journal is asked (store_lookup), and answers later
 *	commit, abort	the end of a prepared session begins; the answer has
 *			the results
 *	checkpoint	the store does it, and answers later
 *	pack		the repository is admitted as for an update; then the
 *			store packs, and answers later
 *
 * Failure modes:
 *	out of memory		refused, and nothing is done
 *	stopping, no transaction left	refused, also by history.c; otherwise
 *				clients could keep the daemon from ending
 *	the id arrives during the look-up	answered from the table
 *	a second commit, or a commit after an abort	joins the end under way
 *	... of a session that is not prepared	refused
 *	... of a session that is decided or unknown	answered as a query: the
 *			session may have been given up, or the answer of the
 *			first commit was lost
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/state.h"

/* Allowed difference between clocks. MARGIN_MS of history_keep.c is the
 * same. */
#define FUTURE_MS (3600 * 1000LL)

void ask_refuse(const struct refd_request *req, enum refd_status status,
    const char *text, scheduler_answer_fn *fn, void *arg)
{
	struct refd_answer ans;

	answer_refused(&ans, &req->txid, status, text);
	ans.request_id = req->request_id;
	fn(arg, &ans);
}

bool ask_is_too_late(const struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg)
{
	if (!e->is_draining || e->table.head != NULL)
		return false;
	ask_refuse(req, BUSY(STOPPING), fn, arg);
	return true;
}

static int64_t wall_ms(const struct scheduler *e, int64_t now_ns)
{
	return e->wall_ms + (now_ns - e->wall_at_ns) / 1000000;
}

bool ask_is_expired(const struct scheduler *e, const struct refd_txid *txid,
    int64_t now_ns)
{
	return (int64_t)refd_txid_birth_ms(txid) + e->cfg.retention_ms <
	    wall_ms(e, now_ns);
}

bool ask_is_from_future(const struct scheduler *e, const struct refd_txid *txid,
    int64_t now_ns)
{
	return (int64_t)refd_txid_birth_ms(txid) >
	    wall_ms(e, now_ns) + FUTURE_MS;
}

void scheduler_query(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg)
{
	struct refd_answer ans;
	struct store_query *q;
	struct entry *ent;

	(void)now_ns;
	ent = table_find_for(&e->table, uid, &req->txid);
	if (ent != NULL && ent->state == ENTRY_DECIDED) {
		decide_tell(e, ent,
		    &(struct asked){ req->request_id, fn, arg });
		return;
	}
	if (ent != NULL) {
		answer_plain(&ans, REFD_ANSWER_PENDING, &req->txid);
		ans.request_id = req->request_id;
		fn(arg, &ans);
		return;
	}
	if (ask_is_too_late(e, req, fn, arg))
		return;
	q = calloc(1, sizeof(*q));
	if (q != NULL)
		q->arg = waiter_add(&e->waiters, fn, arg, req->request_id);
	if (q == NULL || q->arg == NULL) {
		free(q);
		ask_refuse(req, BUSY(MEMORY), fn, arg);
		return;
	}
	q->txid = req->txid;
	q->uid = uid;
	q->any_uid = uid == 0;
	e->nr_lookups++;
	e->store.lookup(e->store.ctx, q);
}

void ask_looked_up(struct scheduler *e, struct store_query *q, int64_t now_ns)
{
	struct entry *ent = table_find_for(&e->table, q->uid, &q->txid);
	struct refd_answer ans;

	e->nr_lookups--;
	if (ent != NULL && ent->state == ENTRY_DECIDED && !q->found) {
		decide_tell_waiter(e, ent, q->arg);
		free(q);
		return;
	}
	if (q->found)
		ans = q->answer;
	else if (ent != NULL)
		answer_plain(&ans, REFD_ANSWER_PENDING, &q->txid);
	else if (q->failed != NULL)
		answer_refused(&ans, &q->txid, REFD_IO, q->failed);
	else if (ask_is_expired(e, &q->txid, now_ns))
		answer_plain(&ans, REFD_ANSWER_EXPIRED, &q->txid);
	else
		answer_plain(&ans, REFD_ANSWER_NEVER_SEEN, &q->txid);
	waiter_answer(&e->waiters, q->arg, &ans);
	refd_answer_done(&q->answer);
	free(q);
}

/* ---- a checkpoint ---- */

void scheduler_checkpoint(struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg)
{
	struct store_checkpoint *cp;

	if (ask_is_too_late(e, req, fn, arg))
		return;
	cp = calloc(1, sizeof(*cp));
	if (cp != NULL)
		cp->arg = waiter_add(&e->waiters, fn, arg, req->request_id);
	if (cp == NULL || cp->arg == NULL) {
		free(cp);
		ask_refuse(req, BUSY(MEMORY), fn, arg);
		return;
	}
	e->nr_lookups++;
	e->store.checkpoint(e->store.ctx, cp);
}

void ask_checkpointed(struct scheduler *e, struct store_checkpoint *cp)
{
	char lsn[24];
	struct refd_pair pair = { .key = "lsn", .value = lsn };
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.pairs = &pair,
		.nr_pairs = 1 };

	e->nr_lookups--;
	snprintf(lsn, sizeof(lsn), "%" PRIu64, cp->lsn);
	if (cp->status != REFD_OK)
		ans = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
			.status = cp->status,
			.text = cp->why };
	waiter_answer(&e->waiters, cp->arg, &ans);
	free(cp->why);
	free(cp);
}

/* ---- packing ---- */

/* So many requests wait at a time, and so many of a user. */
#define PACKS_MAX    64
#define PACKS_OF_ONE 4

/* A request from its arrival to its answer. */
struct packing {
	struct store_pack pack; /* first member */
	struct txn *txn;
	LIST_ENTRY(packing) in_scheduler;
};

static bool may_pack(const struct scheduler *e, uint32_t uid)
{
	const struct packing *p;
	size_t nr = 0, nr_own = 0;

	LIST_FOREACH(p, &e->packings, in_scheduler) {
		nr++;
		nr_own += p->txn->peer.uid == uid;
	}
	return nr < PACKS_MAX && nr_own < PACKS_OF_ONE;
}

void scheduler_pack(struct scheduler *e, struct txn *txn,
    scheduler_answer_fn *fn, void *arg)
{
	struct packing *p = NULL;

	if (ask_is_too_late(e, &txn->req, fn, arg)) {
		txn_free(txn);
		return;
	}
	if (!may_pack(e, txn->peer.uid)) {
		ask_refuse(&txn->req, BUSY(QUESTIONS), fn, arg);
		txn_free(txn);
		return;
	}
	p = calloc(1, sizeof(*p));
	if (p != NULL)
		p->pack.arg =
		    waiter_add(&e->waiters, fn, arg, txn->req.request_id);
	if (p == NULL || p->pack.arg == NULL) {
		free(p);
		ask_refuse(&txn->req, BUSY(MEMORY), fn, arg);
		txn_free(txn);
		return;
	}
	p->txn = txn;
	txn->scheduler = p;
	/* Without an id, the journal has nothing of it. */
	txn->is_looked_up = true;
	LIST_INSERT_HEAD(&e->packings, p, in_scheduler);
	e->nr_lookups++;
	e->store.admit(e->store.ctx, txn);
}

void ask_pack_admitted(struct scheduler *e, struct txn *txn)
{
	struct packing *p = txn->scheduler;

	p->pack.repo = txn->repo;
	if (txn->refused == REFD_OK) {
		e->store.pack(e->store.ctx, &p->pack);
		return;
	}
	p->pack.status = txn->refused;
	p->pack.why = txn->why;
	txn->why = NULL;
	ask_packed(e, &p->pack);
}

void ask_packed(struct scheduler *e, struct store_pack *pack)
{
	struct packing *p = (struct packing *)pack;
	char packed[24], left[24];
	struct refd_pair pairs[] = {
		{ "refs-format", pack->is_reftable ? "reftable" : "files" },
		{ "packed", packed },
		{ "left", left },
	};
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.pairs = pairs,
		.nr_pairs = sizeof(pairs) / sizeof(pairs[0]) };

	snprintf(packed, sizeof(packed), "%" PRIu64, pack->nr_packed);
	snprintf(left, sizeof(left), "%" PRIu64, pack->nr_left);
	if (pack->status != REFD_OK)
		ans = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
			.status = pack->status,
			.text = pack->why };
	LIST_REMOVE(p, in_scheduler);
	e->nr_lookups--;
	waiter_answer(&e->waiters, pack->arg, &ans);
	if (p->txn->repo != NULL)
		e->store.release(e->store.ctx, p->txn->repo);
	p->txn->repo = NULL;
	txn_free(p->txn);
	free(pack->why);
	free(p);
}

/* ---- giving up ---- */

void scheduler_forget_client(struct scheduler *e, void *arg)
{
	waiter_forget(&e->waiters, arg);
	scheduler_end_sessions(e, arg);
}

void scheduler_cancel(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg)
{
	struct entry *ent = table_find_for(&e->table, uid, &req->txid);

	if (ent != NULL && ent->state == ENTRY_WAITING) {
		decide_rest(e, ent, REFD_ABORTED, "cancelled", now_ns);
		decide_finish(e, ent);
	} else if (ent != NULL && ent->state == ENTRY_PREPARED) {
		session_give_up(e, ent, REFD_ABORTED, "cancelled");
	} else if (ent != NULL && entry_is_admitting(ent)) {
		on_admitted_give_up(e, ent, REFD_ABORTED, "cancelled");
	} else if (ent != NULL && entry_is_lent(ent)) {
		entry_give_up(ent, REFD_ABORTED, "cancelled");
	}
	scheduler_query(e, req, uid, now_ns, fn, arg);
}

/* ---- the end of a session ---- */

static void end(struct scheduler *e, struct entry *ent,
    const struct refd_request *req, enum batch_session how,
    scheduler_answer_fn *fn, void *arg)
{
	struct waiter *a;

	if (ent->state != ENTRY_PREPARED && !session_is_ending(ent)) {
		ask_refuse(req, REFD_BADREQUEST, "it is not a prepared session",
		    fn, arg);
		return;
	}
	a = waiter_add(&e->waiters, fn, arg, req->request_id);
	if (a == NULL) {
		ask_refuse(req, BUSY(MEMORY), fn, arg);
		return;
	}
	waiter_push(&ent->waiters, a);
	if (ent->state != ENTRY_PREPARED)
		return;
	if (how == BATCH_ABORT)
		entry_give_up(ent, REFD_ABORTED, "its client aborted it");
	session_end(e, ent, how);
}

static void end_or_query(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, enum batch_session how,
    scheduler_answer_fn *fn, void *arg)
{
	struct entry *ent = table_find_for(&e->table, uid, &req->txid);

	if (ent == NULL || ent->state == ENTRY_DECIDED)
		scheduler_query(e, req, uid, now_ns, fn, arg);
	else
		end(e, ent, req, how, fn, arg);
}

void scheduler_commit(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg)
{
	end_or_query(e, req, uid, now_ns, BATCH_COMMIT, fn, arg);
}

void scheduler_abort(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg)
{
	end_or_query(e, req, uid, now_ns, BATCH_ABORT, fn, arg);
}
