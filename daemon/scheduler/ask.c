/*
 * Happy path of a question about a transaction id:
 *	in the table	answered at once; a cancel takes effect first
 *	else		the journal is asked (store_ask), one question of
 *			each user at a time. A large answer is sent in parts,
 *			and the user's next question waits, because each such
 *			answer holds memory
 *	commit, abort	the end of a prepared session begins; the answer has
 *			the results
 *	history, checkpoint	the store has the question until the answer; a
 *			watch for as long as its client wants to wait
 *	pack		the repository is admitted as for an update; then the
 *			store packs, and answers later
 *
 * Failure modes:
 *	out of memory		refused, and nothing is done
 *	stopping, no transaction left	refused, because clients could otherwise
 *				keep the daemon from ending; the store gives
 *				the waiting watches back
 *	the client of a watch ends	the store is told, and gives the watch
 *				back
 *	a transaction with the id arrives during the look-up	answered from
 *				the table, because the journal may have found
 *				rows that are not durable yet. If the
 *				transaction has left the table meanwhile, the
 *				journal is asked again
 *	very many questions	busy. The last eighth of the questions is closed
 *				to a user who has half of them. The memory of
 *				all requests has the same rule
 *	a second commit, or a commit after an abort	joins the end under way
 *	... of a session that is not prepared	refused
 *	... of a session that is decided or unknown	answered as a query: the
 *			session may have been given up, or the answer of the
 *			first commit was lost
 */
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
	return e->wall_ms + (now_ns - e->turn_ns) / 1000000;
}

bool ask_is_expired(const struct scheduler *e, const struct refd_txid *txid,
    int64_t now_ns)
{
	const int64_t birth_ms = (int64_t)refd_txid_birth_ms(txid);

	return birth_ms + e->cfg.retention_ms < wall_ms(e, now_ns) ||
	    birth_ms < e->cfg.joined_ms;
}

bool ask_is_from_future(const struct scheduler *e, const struct refd_txid *txid,
    int64_t now_ns)
{
	return (int64_t)refd_txid_birth_ms(txid) >
	    wall_ms(e, now_ns) + FUTURE_MS;
}

/* ---- the room for questions ---- */

/* May a user ask a question that holds BYTES? */
static bool has_room(const struct scheduler *e, uint32_t uid, size_t bytes)
{
	const struct quota_memory all = scheduler_memory(e);

	if (all.held > 0 && all.held + bytes > all.max)
		return false;
	if (!quota_may_ask(&e->quotas, &e->cfg.quotas, uid, bytes, all))
		return false;
	return e->nr_asks < ASKS_MAX - ASKS_MAX / 8 ||
	    (e->nr_asks < ASKS_MAX &&
		quota_questions(&e->quotas, uid) <= ASKS_MAX / 2);
}

/* Makes a question that holds MORE bytes besides its struct, until end(). NULL:
 * memory is out, and FN has been called with the refusal. */
static struct store_question *begin(struct scheduler *e,
    enum store_question_kind kind, const struct refd_request *req, uint32_t uid,
    size_t more, scheduler_answer_fn *fn, void *arg)
{
	struct waiter *a = waiter_add(&e->waiters, fn, arg, req->request_id);
	struct store_question *q = a != NULL ? question_new(kind) : NULL;

	if (q != NULL) {
		q->bytes = sizeof(*q) + more;
		q->peer.uid = uid;
		q->waiter = a;
		q->quota = quota_take_question(&e->quotas, uid, q->bytes);
	}
	if (q == NULL || q->quota == NULL) {
		question_free(q);
		if (a != NULL)
			waiter_drop(&e->waiters, a);
		ask_refuse(req, BUSY(MEMORY), fn, arg);
		return NULL;
	}
	e->nr_asks++;
	e->held_bytes += q->bytes;
	return q;
}

/* The waiter of Q is gone. */
static void end(struct scheduler *e, struct store_question *q)
{
	e->nr_asks--;
	e->held_bytes -= q->bytes;
	quota_give_question(&e->quotas, q->quota, q->bytes);
	if (q->txn != NULL && q->txn->repo != NULL) {
		store_release(e->store, q->txn->repo);
		q->txn->repo = NULL;
	}
	question_free(q);
}

static void tell(struct scheduler *e, struct store_question *q)
{
	waiter_answer(&e->waiters, q->waiter, &q->answer);
	end(e, q);
}

/* ---- questions about an id ---- */

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

/* Call only if the table does not have the transaction. While a transaction is
 * in the table, the journal may have only some of its rows, or rows that are
 * not durable yet. */
static void look_up(struct scheduler *e, struct store_question *q)
{
	q->is_stale = false;
	DL_APPEND2(e->asked, q, prev_asked, next_asked);
	store_ask(e->store, q);
}

/* Q need not go to the store, or need not any more. */
static bool is_told_here(struct scheduler *e, struct store_question *q)
{
	struct entry *ent =
	    table_find_for(&e->table, q->peer.uid, &q->req.txid);
	struct refd_answer ans;

	if (ent != NULL) {
		tell_here(e, ent, q->waiter);
	} else if (is_too_late(e) || waiter_is_mute(q->waiter)) {
		answer_refused(&ans, &q->req.txid, BUSY(STOPPING));
		waiter_answer(&e->waiters, q->waiter, &ans);
	} else {
		return false;
	}
	return true;
}

/* Begins the next look-up of the user. An answer given here calls back, and the
 * callback may ask for another look-up, which calls this function again. The
 * end of the last question of QUOTA frees QUOTA, so the caller must keep one
 * question of QUOTA until this function returns. */
static void look_up_next(struct scheduler *e, struct quota *quota)
{
	struct store_question *q;

	while (!quota->is_looked_up && (q = quota->to_look_up) != NULL) {
		DL_DELETE2(quota->to_look_up, q, prev_asked, next_asked);
		quota->is_looked_up = true;
		if (!is_told_here(e, q)) {
			look_up(e, q);
			continue;
		}
		quota->is_looked_up = false;
		end(e, q);
	}
}

/* The waiter of Q, which was looked up, is gone. */
static void query_told(struct scheduler *e, struct store_question *q)
{
	q->quota->is_looked_up = false;
	look_up_next(e, q->quota);
	end(e, q);
}

void scheduler_query(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg)
{
	struct entry *ent = table_find_for(&e->table, uid, &req->txid);
	struct store_question *q;
	struct waiter *a;

	(void)now_ns;
	if (ent != NULL) {
		a = waiter_add(&e->waiters, fn, arg, req->request_id);
		if (a != NULL)
			tell_here(e, ent, a);
		else
			ask_refuse(req, BUSY(MEMORY), fn, arg);
		return;
	}
	if (ask_is_too_late(e, req, fn, arg))
		return;
	if (!has_room(e, uid, sizeof(*q))) {
		ask_refuse(req, BUSY(QUESTIONS), fn, arg);
		return;
	}
	q = begin(e, STORE_ASK_ID, req, uid, 0, fn, arg);
	if (q == NULL)
		return;
	q->req.txid = req->txid;
	DL_APPEND2(q->quota->to_look_up, q, prev_asked, next_asked);
	look_up_next(e, q->quota);
}

void ask_note_txn(struct scheduler *e, const struct txn *txn)
{
	struct store_question *q;

	DL_FOREACH2(e->asked, q, next_asked)
	if (refd_txid_eq(&q->req.txid, &txn->req.txid))
		q->is_stale = true;
}

/* Was the id born before this node joined the others? Then only other nodes may
 * have its outcome. The clock of the client may have been ahead, so ids of one
 * more hour count. A new transaction gets no such hour: otherwise the node
 * would refuse all updates during its first hour. */
static bool may_be_elsewhere(const struct scheduler *e,
    const struct refd_txid *txid)
{
	return e->cfg.joined_ms != 0 &&
	    (int64_t)refd_txid_birth_ms(txid) < e->cfg.joined_ms + FUTURE_MS;
}

/* The store has the answer, and no transaction with this id is in flight. */
static void tell_found(struct scheduler *e, struct store_question *q,
    int64_t now_ns)
{
	if (q->answer.nr_results > ANSWER_PART) {
		DL_APPEND2(e->found, q, prev_asked, next_asked);
		return;
	}
	if (q->answer.kind == REFD_ANSWER_NEVER_SEEN &&
	    (ask_is_expired(e, &q->req.txid, now_ns) ||
		may_be_elsewhere(e, &q->req.txid)))
		q->answer.kind = REFD_ANSWER_EXPIRED;
	waiter_answer(&e->waiters, q->waiter, &q->answer);
	query_told(e, q);
}

static void looked_up(struct scheduler *e, struct store_question *q,
    int64_t now_ns)
{
	struct entry *ent =
	    table_find_for(&e->table, q->peer.uid, &q->req.txid);

	DL_DELETE2(e->asked, q, prev_asked, next_asked);
	if (ent != NULL) {
		tell_here(e, ent, q->waiter);
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
	struct store_question *q = e->found;
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
	if (ans.goes_on && !waiter_is_mute(q->waiter)) {
		waiter_part(q->waiter, &ans);
		return TOLD_PART;
	}
	DL_DELETE2(e->found, q, prev_asked, next_asked);
	waiter_answer(&e->waiters, q->waiter, &ans);
	query_told(e, q);
	return TOLD_ALL;
}

/* ---- history ---- */

static bool copy_peer(const struct txn_peer *from, struct txn_peer *to)
{
	size_t size = from->nr_gids * sizeof(*from->gids);

	*to = *from;
	to->gids = malloc(size + 1);
	if (to->gids == NULL)
		return false;
	if (size > 0)
		memcpy(to->gids, from->gids, size);
	return true;
}

void scheduler_history(struct scheduler *e, struct refd_request *req,
    const struct txn_peer *peer, int64_t now_ns, scheduler_answer_fn *fn,
    void *arg)
{
	const size_t more = req->bytes + peer->nr_gids * sizeof(*peer->gids);
	const uint32_t wait_ms =
	    req->deadline_ms != 0 ? req->deadline_ms : REFD_WATCH_MS;
	struct store_question *q;

	if (ask_is_too_late(e, req, fn, arg))
		return;
	if (!has_room(e, peer->uid, sizeof(*q) + more)) {
		ask_refuse(req, BUSY(QUESTIONS), fn, arg);
		return;
	}
	q = begin(e, STORE_ASK_HISTORY, req, peer->uid, more, fn, arg);
	if (q == NULL)
		return;
	if (!copy_peer(peer, &q->peer)) {
		question_refuse(q, BUSY(MEMORY));
		tell(e, q);
		return;
	}
	q->req = *req;
	memset(req, 0, sizeof(*req));
	waiter_tell_forgotten(q->waiter, &q->is_dropped);
	q->client = arg;
	q->deadline_ns = now_ns + (int64_t)wait_ms * 1000000;
	store_ask(e->store, q);
}

/* ---- a checkpoint, and packing ---- */

/* So many requests to pack wait at a time, and so many of a user. */
#define PACKS_MAX    64
#define PACKS_OF_ONE 4

void scheduler_checkpoint(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, scheduler_answer_fn *fn, void *arg)
{
	struct store_question *q = NULL;

	if (!ask_is_too_late(e, req, fn, arg))
		q = begin(e, STORE_ASK_CHECKPOINT, req, uid, 0, fn, arg);
	if (q != NULL)
		store_ask(e->store, q);
}

static bool may_pack(const struct scheduler *e, uint32_t uid)
{
	const struct store_question *q;
	size_t nr = 0, nr_own = 0;

	DL_FOREACH2(e->packs, q, next_asked)
	{
		nr++;
		nr_own += q->peer.uid == uid;
	}
	return nr < PACKS_MAX && nr_own < PACKS_OF_ONE;
}

void scheduler_pack(struct scheduler *e, struct txn *txn,
    scheduler_answer_fn *fn, void *arg)
{
	struct store_question *q = NULL;

	if (ask_is_too_late(e, &txn->req, fn, arg))
		; /* the client has the answer */
	else if (!may_pack(e, txn->peer.uid))
		ask_refuse(&txn->req, BUSY(QUESTIONS), fn, arg);
	else
		q = begin(e, STORE_ASK_PACK, &txn->req, txn->peer.uid, 0, fn,
		    arg);
	if (q == NULL) {
		txn_free(txn);
		return;
	}
	q->txn = txn;
	txn->scheduler = q;
	/* The transaction has no id, so the journal has no row of it, and no
	 * look-up is needed. */
	txn->is_looked_up = true;
	DL_APPEND2(e->packs, q, prev_asked, next_asked);
	store_admit(e->store, txn);
}

static void packed(struct scheduler *e, struct store_question *q)
{
	DL_DELETE2(e->packs, q, prev_asked, next_asked);
	tell(e, q);
}

void ask_pack_admitted(struct scheduler *e, struct txn *txn)
{
	struct store_question *q = txn->scheduler;

	if (txn->refused == REFD_OK) {
		store_ask(e->store, q);
		return;
	}
	question_refuse_for(q, txn->refused, txn->why);
	txn->why = NULL;
	packed(e, q);
}

/* ---- the way back ---- */

void ask_answered(struct scheduler *e, struct store_question *q, int64_t now_ns)
{
	switch (q->kind) {
	case STORE_ASK_ID:
		looked_up(e, q, now_ns);
		break;
	case STORE_ASK_HISTORY:
	case STORE_ASK_CHECKPOINT:
		tell(e, q);
		break;
	case STORE_ASK_PACK:
		packed(e, q);
		break;
	case STORE_ASK_LOOK:
		look_back((struct store_look *)q);
		break;
	}
}

/* ---- giving up ---- */

/* Called for each transaction whose client is gone. A transaction of a gate
 * goes on: git makes the change, or has made it, so history needs the
 * record. */
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

/* When a client is gone, its user believes that nothing happened: after a
 * killed hook, git says "rejected". So the transaction ends here. Nobody has
 * refused it, so the id gets no outcome, and the user may send the transaction
 * again. */
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

static void end_session(struct scheduler *e, struct entry *ent,
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
		end_session(e, ent, req, how, fn, arg);
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
