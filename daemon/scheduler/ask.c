/*
 * Happy path of a question about a transaction id:
 *	here		answered from the table; a cancel takes effect first
 *	not here	the journal is asked (store_lookup), one question of
 *			each user at a time. A large answer is sent in parts,
 *			and the user's next question waits, because each such
 *			answer holds memory
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
 *	the id arrives during the look-up	answered from the table; the
 *				journal may have said what is not durable. If
 *				the transaction is gone again, asked again
 *	very many questions, of history.c too	busy; a user with half of them,
 *				or of the memory of all requests, cannot use
 *				the last eighth
 *	a second commit, or a commit after an abort	joins the end under way
 *	... of a session that is not prepared	refused
 *	... of a session that is decided or unknown	answered as a query: the
 *			session may have been given up, or the answer of the
 *			first commit was lost
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/state.h"

/* Allowed difference between clocks. MARGIN_MS of history_keep.c is the
 * same. */
#define FUTURE_MS (3600 * 1000LL)
/* Questions about ids and history that wait. */
#define ASKS_MAX 16384

void ask_refuse(const struct refd_request *req, enum refd_status status,
    const char *text, scheduler_answer_fn *fn, void *arg)
{
	struct refd_answer ans;

	answer_refused(&ans, &req->txid, status, text);
	ans.request_id = req->request_id;
	fn(arg, &ans);
}

static bool is_too_late(const struct scheduler *e)
{
	return e->is_draining && e->table.head == NULL;
}

bool ask_is_too_late(const struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg)
{
	if (!is_too_late(e))
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

/* ---- the room for questions ---- */

bool ask_has_room(const struct scheduler *e, uint32_t uid, size_t bytes)
{
	const size_t max = e->cfg.max_waiting_bytes;

	if (e->held_bytes > 0 && e->held_bytes + bytes > max)
		return false;
	if (!quota_may_ask(&e->quotas, &e->cfg.quotas, uid, bytes,
		e->held_bytes, max))
		return false;
	return e->nr_asks < ASKS_MAX - ASKS_MAX / 8 ||
	    (e->nr_asks < ASKS_MAX &&
		quota_questions(&e->quotas, uid) <= ASKS_MAX / 2);
}

struct quota *ask_begin(struct scheduler *e, uint32_t uid, size_t bytes)
{
	struct quota *quota = quota_take_question(&e->quotas, uid, bytes);

	if (quota != NULL) {
		e->nr_asks++;
		e->held_bytes += bytes;
	}
	return quota;
}

void ask_end(struct scheduler *e, struct quota *quota, size_t bytes)
{
	e->nr_asks--;
	e->held_bytes -= bytes;
	quota_give_question(&e->quotas, quota, bytes);
}

/* ---- questions about an id ---- */

/* The waiter of Q is gone. */
static void query_end(struct scheduler *e, struct store_query *q)
{
	struct quota *quota = q->quota;

	refd_answer_done(&q->answer);
	free(q);
	ask_end(e, quota, sizeof(*q));
}

/* Answers A from the table, which has the transaction ENT. */
static void tell_here(struct scheduler *e, struct entry *ent, struct waiter *a)
{
	struct refd_answer ans;

	if (ent->state == ENTRY_DECIDED) {
		decide_tell(e, ent, a);
		return;
	}
	answer_plain(&ans, REFD_ANSWER_PENDING, &ent->key.txid);
	waiter_answer(&e->waiters, a, &ans);
}

/* The table must not have the transaction: the journal may have rows of it that
 * are not durable yet, or not all its rows. */
static void look_up(struct scheduler *e, struct store_query *q)
{
	q->is_stale = false;
	DL_APPEND2(e->asked, q, prev_asked, next_asked);
	store_lookup(e->store, q);
}

/* Q need not go to the store, or need not any more. */
static bool is_told_here(struct scheduler *e, struct store_query *q)
{
	struct entry *ent = table_find_for(&e->table, q->uid, &q->txid);
	struct refd_answer ans;

	if (ent != NULL) {
		tell_here(e, ent, q->arg);
	} else if (is_too_late(e) || waiter_is_mute(q->arg)) {
		answer_refused(&ans, &q->txid, BUSY(STOPPING));
		waiter_answer(&e->waiters, q->arg, &ans);
	} else {
		return false;
	}
	return true;
}

/* Begins the next look-up of the user. A callback may ask for another. QUOTA
 * must have a question that stays. */
static void look_up_next(struct scheduler *e, struct quota *quota)
{
	struct store_query *q;

	while (!quota->is_looked_up && (q = quota->to_look_up) != NULL) {
		DL_DELETE2(quota->to_look_up, q, prev_asked, next_asked);
		quota->is_looked_up = true;
		if (!is_told_here(e, q)) {
			look_up(e, q);
			continue;
		}
		quota->is_looked_up = false;
		query_end(e, q);
	}
}

/* The waiter of Q, which was looked up, is gone. */
static void query_told(struct scheduler *e, struct store_query *q)
{
	struct quota *quota = q->quota;

	quota->is_looked_up = false;
	look_up_next(e, quota);
	query_end(e, q);
}

/* False: out of memory. */
static bool look_up_later(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, struct waiter *a)
{
	struct store_query *q = calloc(1, sizeof(*q));
	struct quota *quota = q != NULL ? ask_begin(e, uid, sizeof(*q)) : NULL;

	if (quota == NULL) {
		free(q);
		return false;
	}
	q->quota = quota;
	q->arg = a;
	q->txid = req->txid;
	q->uid = uid;
	q->any_uid = uid == 0;
	DL_APPEND2(quota->to_look_up, q, prev_asked, next_asked);
	look_up_next(e, quota);
	return true;
}

void scheduler_query(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg)
{
	struct entry *ent = table_find_for(&e->table, uid, &req->txid);
	struct waiter *a;

	(void)now_ns;
	if (ent == NULL && ask_is_too_late(e, req, fn, arg))
		return;
	if (ent == NULL && !ask_has_room(e, uid, sizeof(struct store_query))) {
		ask_refuse(req, BUSY(QUESTIONS), fn, arg);
		return;
	}
	a = waiter_add(&e->waiters, fn, arg, req->request_id);
	if (a != NULL && ent != NULL) {
		tell_here(e, ent, a);
	} else if (a == NULL || !look_up_later(e, req, uid, a)) {
		if (a != NULL)
			waiter_drop(&e->waiters, a);
		ask_refuse(req, BUSY(MEMORY), fn, arg);
	}
}

void ask_note_txn(struct scheduler *e, const struct txn *txn)
{
	struct store_query *q;

	DL_FOREACH2(e->asked, q, next_asked)
	if (refd_txid_eq(&q->txid, &txn->req.txid))
		q->is_stale = true;
}

/* The store has the answer, and no transaction with this id is in flight. */
static void tell_found(struct scheduler *e, struct store_query *q,
    int64_t now_ns)
{
	struct refd_answer ans;

	if (q->found && q->answer.nr_results > ANSWER_PART) {
		DL_APPEND2(e->found, q, prev_asked, next_asked);
		return;
	}
	if (q->found)
		ans = q->answer;
	else if (q->failed != NULL)
		answer_refused(&ans, &q->txid, REFD_IO, q->failed);
	else if (ask_is_expired(e, &q->txid, now_ns))
		answer_plain(&ans, REFD_ANSWER_EXPIRED, &q->txid);
	else
		answer_plain(&ans, REFD_ANSWER_NEVER_SEEN, &q->txid);
	waiter_answer(&e->waiters, q->arg, &ans);
	query_told(e, q);
}

void ask_looked_up(struct scheduler *e, struct store_query *q, int64_t now_ns)
{
	struct entry *ent = table_find_for(&e->table, q->uid, &q->txid);

	DL_DELETE2(e->asked, q, prev_asked, next_asked);
	if (ent != NULL) {
		tell_here(e, ent, q->arg);
		query_told(e, q);
	} else if (q->is_stale) {
		refd_answer_done(&q->answer);
		look_up(e, q);
	} else {
		tell_found(e, q, now_ns);
	}
}

enum told ask_tell_part(struct scheduler *e)
{
	struct store_query *q = e->found;
	struct refd_answer ans;
	size_t left;

	if (q == NULL)
		return TOLD_NONE;
	ans = q->answer;
	left = ans.nr_results - q->told;
	ans.results += q->told;
	ans.nr_results = left > ANSWER_PART ? ANSWER_PART : left;
	ans.is_continued = q->told > 0;
	ans.goes_on = left > ANSWER_PART;
	q->told += ans.nr_results;
	if (ans.goes_on && !waiter_is_mute(q->arg)) {
		waiter_part(q->arg, &ans);
		return TOLD_PART;
	}
	DL_DELETE2(e->found, q, prev_asked, next_asked);
	waiter_answer(&e->waiters, q->arg, &ans);
	query_told(e, q);
	return TOLD_ALL;
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
	store_checkpoint(e->store, cp);
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
	store_admit(e->store, txn);
}

void ask_pack_admitted(struct scheduler *e, struct txn *txn)
{
	struct packing *p = txn->scheduler;

	p->pack.repo = txn->repo;
	if (txn->refused == REFD_OK) {
		store_pack(e->store, &p->pack);
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
		store_release(e->store, p->txn->repo);
	p->txn->repo = NULL;
	txn_free(p->txn);
	free(pack->why);
	free(p);
}

/* ---- giving up ---- */

/* Git makes, or has made, the change of a gate, so its record must not be
 * missing. */
static void leave_entry(void *arg, struct entry *ent)
{
	struct entry **left = arg;

	if (ent->is_left || entry_is_session(ent) ||
	    ent->state == ENTRY_ENDING || ent->state == ENTRY_DECIDED ||
	    ent->txn->req.gate != REFD_GATE_NONE ||
	    !waiter_all_are_mute(ent->waiters))
		return;
	ent->is_left = true;
	ent->next_left = *left;
	*left = ent;
}

/* A client that is gone would tell its user that nothing happened: git says
 * "rejected" after a hook was killed. But nobody refused the transaction, so
 * the id gets no outcome: the user may send it again. */
void scheduler_forget_client(struct scheduler *e, void *arg, int64_t now_ns)
{
	struct entry *left = NULL, *ent;

	waiter_forget(&e->waiters, arg, leave_entry, &left);
	while ((ent = left) != NULL) {
		left = ent->next_left;
		ent->is_left = false;
		decide_give_up(e, ent, BUSY(ABANDONED), now_ns);
	}
	scheduler_end_sessions(e, arg);
}

void scheduler_cancel(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg)
{
	struct entry *ent = table_find_for(&e->table, uid, &req->txid);

	if (ent != NULL)
		decide_give_up(e, ent, REFD_ABORTED, "cancelled", now_ns);
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
	if (session_is_ending(ent))
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
