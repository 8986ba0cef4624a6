/*
 * Happy path:
 *	end	all undecided updates that are in no batch get a status, some
 *		per run of the scheduler
 *	finish	all updates are decided: the entry leaves the queue
 *	answer	every waiter gets the answer, after the clients of prepared
 *		sessions (session.c), some per run of the scheduler. A large
 *		result is sent in parts, one part per run
 *	keep	the table keeps an entry whose outcomes are not recorded yet
 *	forget	all is recorded: from now on the journal answers
 *
 * Failure modes, each with a status:
 *	deadline, cancel, stop		undecided updates outside of a batch
 *	a lock held for too long	locked
 *	an atomic sibling failed	aborted
 *
 * The callback of an answer may submit, cancel or forget a transaction. So the
 * answers are sent only when the state of the scheduler is consistent: by
 * scheduler_run(), or at once if the request needs no entry of its own.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/state.h"

/* Updates that are decided at once, and in a later run of the scheduler. */
#define END_AT_ONCE 64
#define END_IN_TURN 512
/* Answers and results of small transactions in a run of the scheduler. */
#define TELL_AT_ONCE 2000

void decide_count(struct txn_update *u)
{
	free(u->locked_path);
	u->locked_path = NULL;
	entry_of(u)->nr_undecided--;
	unrecorded_add(u);
}

void decide(struct scheduler *e, struct txn_update *u, enum refd_status status,
    const char *text, int64_t now_ns)
{
	if (u->ref_queue != NULL)
		ref_queue_remove(&e->ref_queues, u, now_ns);
	txn_decide(u, status, text);
	decide_count(u);
}

/* The name of the ref in the message about a held lock. For the HEAD of a
 * worktree the name is HEAD, because the update only adds a line to the log of
 * HEAD. */
static const char *locked_name(const struct txn_update *u, const char *path)
{
	const char *base = strrchr(path, '/');
	bool is_head = strcmp(base != NULL ? base + 1 : path, "HEAD") == 0 &&
	    strncmp(path, "refs/", 5) != 0;

	if (is_head && strncmp(u->ask->name, "refs/", 5) == 0)
		return "HEAD";
	return u->ask->name;
}

void decide_locked(struct scheduler *e, struct txn_update *u, int64_t now_ns)
{
	const char *path =
	    u->locked_path != NULL ? u->locked_path : u->ask->name;
	char lock[2 * REFD_PATH_MAX];

	if (u->ref_queue != NULL)
		ref_queue_remove(&e->ref_queues, u, now_ns);
	if (u->again == TXN_AGAIN_DIVERGED) {
		txn_decidef(u, busy_cause_count(BUSY_GROUP),
		    "'%s' has a value that the group has not given it, and the "
		    "group's value is not back yet: see group-ref-diverged in "
		    "the log of this node",
		    u->ask->name);
		decide_count(u);
		return;
	}
	snprintf(lock, sizeof(lock), "%s/%s.lock",
	    store_repo_path(u->txn->repo), path);
	if (txn_update_missed(u, "packed-refs"))
		txn_decide_detail(u, REFD_LOCKED, REFD_DETAIL_PACKED_LOCKED,
		    lock, NULL, NULL);
	else
		txn_decide_detail(u, REFD_LOCKED, REFD_DETAIL_LOCKED,
		    locked_name(u, path), lock, NULL);
	decide_count(u);
}

/* ---- the end of a transaction outside of batches ---- */

static void decide_one(struct scheduler *e, struct txn_update *u,
    const struct entry_ending *ending, int64_t now_ns)
{
	if (u->status != REFD_PENDING)
		return;
	if (!ending->is_late)
		decide(e, u, ending->status, ending->text, now_ns);
	else if (u->again == TXN_AGAIN_LOCKED || u->again == TXN_AGAIN_DIVERGED)
		decide_locked(e, u, now_ns);
}

/* All updates were looked at. */
static void end_pass(struct scheduler *e, struct entry *ent)
{
	struct entry_ending *ending = &ent->ending;

	if (ent->nr_undecided > 0) {
		ending->is_late = false;
		ending->at = 0;
		if (ent->txn->req.atomic &&
		    ent->nr_undecided < ent->txn->nr_updates)
			ending->status = REFD_ABORTED;
		return;
	}
	DL_DELETE2(e->ending, ent, ending.prev, ending.next);
	decide_finish(e, ent);
}

/* Looks at up to MAX updates of ENT; returns at how many. */
static size_t end_some(struct scheduler *e, struct entry *ent, size_t max,
    int64_t now_ns)
{
	struct txn *txn = ent->txn;
	size_t nr = 0;

	while (ent->state == ENTRY_ENDING && nr < max) {
		if (ent->ending.at == txn->nr_updates || ent->nr_undecided == 0)
			end_pass(e, ent);
		else
			decide_one(e, &txn->updates[ent->ending.at++],
			    &ent->ending, now_ns);
		nr++;
	}
	return nr;
}

static void end_begins(struct scheduler *e, struct entry *ent,
    const struct entry_ending *ending, int64_t now_ns)
{
	entry_move(ent, ENTRY_ENDING);
	scheduler_time(e, ent, false);
	if (ent->is_arriving)
		fairness_arrived(ent);
	fairness_refresh(ent);
	ent->ending = *ending;
	DL_APPEND2(e->ending, ent, ending.prev, ending.next);
	end_some(e, ent, END_AT_ONCE, now_ns);
}

void decide_end(struct scheduler *e, struct entry *ent, enum refd_status status,
    const char *text, int64_t now_ns)
{
	end_begins(e, ent,
	    &(struct entry_ending){ .status = status, .text = text }, now_ns);
}

void decide_give_up(struct scheduler *e, struct entry *ent,
    enum refd_status status, const char *text, int64_t now_ns)
{
	switch (ent->state) {
	case ENTRY_WAITING:
		decide_end(e, ent, status, text, now_ns);
		break;
	case ENTRY_PREPARED:
		/* If a commit is under way, the commit decides the session. */
		entry_give_up(ent, status, text);
		session_end(e, ent, BATCH_ABORT);
		break;
	case ENTRY_ADMITTING:
	case ENTRY_DIRECT:
		on_admitted_give_up(e, ent, status, text);
		break;
	case ENTRY_IN_BATCH:
		entry_give_up(ent, status, text);
		break;
	case ENTRY_ENDING:
	case ENTRY_DECIDED:
		break;
	}
}

void decide_late(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	end_begins(e, ent,
	    &(struct entry_ending){ .status = REFD_DEADLINE, .is_late = true },
	    now_ns);
}

bool decide_siblings(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	struct txn *txn = ent->txn;

	if (!txn->req.atomic || ent->nr_undecided == txn->nr_updates)
		return false;
	/* An atomic transaction with a failed update cannot have an ok. */
	assert(txn->nr_of[REFD_OK] == 0 || ent->nr_undecided == 0);
	decide_end(e, ent, REFD_ABORTED, NULL, now_ns);
	return true;
}

void decide_go_on(struct scheduler *e, int64_t now_ns)
{
	size_t nr = 0;

	while (e->ending != NULL && nr < END_IN_TURN)
		nr += end_some(e, e->ending, END_IN_TURN - nr, now_ns);
}

/* ---- answering ---- */

/* A transaction without updates is rejected if it was refused or given up. */
static enum refd_outcome outcome_of(const struct entry *ent)
{
	if (ent->txn->nr_updates == 0 &&
	    (ent->txn->refused != REFD_OK || ent->end_status != REFD_OK))
		return REFD_REJECTED;
	return txn_outcome(ent->txn);
}

/* Running out of memory stores no text. */
static const char *why_refused(const struct txn *txn)
{
	if (txn->refused == REFD_OK)
		return NULL;
	return txn->refused == REFD_BUSY && txn->why == NULL ?
	    busy_cause_text(BUSY_MEMORY) :
	    txn->why;
}

/* A gate was not looked at. */
static enum refd_status why_no_look(const struct txn *txn)
{
	if (txn->refused != REFD_OK)
		return txn->refused;
	return txn->nr_updates > 0 ? txn->updates[0].status : REFD_BADREQUEST;
}

/* ---- answers ---- */

void answer_plain(struct refd_answer *ans, enum refd_answer_kind kind,
    const struct refd_txid *txid)
{
	memset(ans, 0, sizeof(*ans));
	ans->kind = kind;
	ans->txid = *txid;
}

void answer_refused(struct refd_answer *ans, const struct refd_txid *txid,
    enum refd_status status, const char *text)
{
	answer_plain(ans, REFD_ANSWER_REFUSED, txid);
	ans->status = status;
	ans->text = text;
}

static void result_of(struct refd_result *res, const struct txn_update *u)
{
	res->name = u->ask->name;
	res->status = u->status;
	res->has_found = u->has_found;
	res->found = u->found;
	res->text = u->text;
}

/* Returns the first update of the next part. */
static const struct txn_update *fill_part(struct answer *a,
    enum refd_answer_kind kind, const struct txn *txn)
{
	size_t from = a->told, nr = txn->nr_updates - from, i;

	if (nr > ANSWER_PART)
		nr = ANSWER_PART;
	answer_plain(&a->ans, kind, &txn->req.txid);
	a->ans.is_continued = from > 0;
	a->told += nr;
	a->ans.goes_on = a->told < txn->nr_updates;
	a->ans.results = a->results;
	a->ans.nr_results = nr;
	a->ans.nr_updates = txn->nr_updates;
	a->ans.object_format = txn->req.object_format;
	for (i = 0; i < nr; i++)
		result_of(&a->results[i], &txn->updates[from + i]);
	return &txn->updates[from];
}

void answer_results(struct answer *a, const struct txn *txn,
    struct store *store, const char *text)
{
	const struct txn_update *u = fill_part(a, REFD_ANSWER_RESULTS, txn);
	size_t i;

	for (i = 0; i < a->ans.nr_results; i++, u++)
		if (u->text == NULL && u->status != REFD_OK)
			a->results[i].text = text;
	a->ans.outcome = txn_outcome(txn);
	a->ans.lsn = txn->lsn;
	store_token_log(store, a->ans.journal);
}

static void answer_prepared(struct answer *a, const struct txn *txn)
{
	const struct txn_update *u = fill_part(a, REFD_ANSWER_PREPARED, txn);
	size_t i;

	for (i = 0; i < a->ans.nr_results; i++, u++) {
		if (u->status != REFD_PENDING)
			continue;
		a->results[i].status = REFD_OK;
		a->results[i].text = u->final_name;
	}
	a->ans.rewrites_packed = txn->rewrites_packed;
}

/* Fills A with the next part of the answer about ENT. */
static void next_part(const struct scheduler *e, const struct entry *ent,
    struct answer *a)
{
	const struct txn *txn = ent->txn;
	struct refd_answer *ans = &a->ans;

	if (ent->state == ENTRY_PREPARED) {
		answer_prepared(a, txn);
	} else if (txn->is_looked) {
		answer_plain(ans, REFD_ANSWER_PONG, &ent->key.txid);
	} else if (ent->quota.retry_after_ms != 0) {
		answer_refused(ans, &ent->key.txid, txn->refused,
		    busy_cause_text(BUSY_REPOSITORY));
		ans->retry_after_ms = ent->quota.retry_after_ms;
	} else if (txn->req.gate == REFD_GATE_PREPARED) {
		answer_refused(ans, &ent->key.txid, why_no_look(txn),
		    why_refused(txn));
	} else if (txn->nr_updates == 0 && txn->refused != REFD_OK) {
		/* There is no result that could have the text. */
		answer_refused(ans, &ent->key.txid, txn->refused,
		    why_refused(txn));
	} else {
		answer_results(a, txn, e->store, why_refused(txn));
		ans->outcome = outcome_of(ent);
	}
}

static void count_outcome(struct scheduler *e, const struct entry *ent)
{
	enum refd_outcome outcome = outcome_of(ent);
	const struct txn *txn = ent->txn;

	e->stats.transactions++;
	admin_count(e, ent, outcome);
	switch (outcome) {
	case REFD_COMMITTED:
		e->stats.committed++;
		break;
	case REFD_PARTIAL:
		e->stats.partial++;
		break;
	case REFD_REJECTED:
		e->stats.rejected++;
		break;
	case REFD_OUTCOME_UNKNOWN:
		e->stats.unknown++;
		break;
	}
	e->stats.refs_ok += txn->nr_of[REFD_OK];
	e->stats.refs_failed += txn->nr_updates - txn->nr_of[REFD_OK];
}

/* Reports the updates of TXN with the status `io`. An answer from the journal
 * is reported again, because the daemon that answered first may have been
 * killed before it reported them. */
static void tell_io(struct scheduler *e, const struct txn *txn)
{
	const struct txn_update *u = txn->updates;
	struct scheduler_io io = { .txn = txn, .nr = txn->nr_of[REFD_IO] };

	if (io.nr == 0)
		return;
	while (u->status != REFD_IO)
		u++;
	io.repo =
	    txn->repo != NULL ? store_repo_path(txn->repo) : txn->req.git_dir;
	io.ref = u->ask->name;
	io.why = u->text != NULL ? u->text : why_refused(txn);
	if (!txn->replayed)
		measure_failed(&e->measure, io.repo, io.ref, io.why,
		    txn->peer.uid, e->turn_ns);
	if (e->cfg.on_io != NULL)
		e->cfg.on_io(e->cfg.io_arg, &io);
}

/* A transaction that only verifies refs: clients use it to ask whether a
 * repository is served, some of them every minute. The numbers show the load of
 * users, so they leave such a question out. */
static bool is_question(const struct txn *txn)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].ask->action != REFD_VERIFY)
			return false;
	return txn->nr_updates > 0 && txn->req.gate == REFD_GATE_NONE;
}

static struct entry **list_of(struct scheduler *e, const struct entry *ent)
{
	return ent->txn->nr_updates > ANSWER_PART ? &e->decided_large :
						    &e->decided;
}

static void begin_telling(struct scheduler *e, struct entry *ent)
{
	if (!ent->is_telling)
		DL_APPEND2(*list_of(e, ent), ent, prev_telling, next_telling);
	ent->is_telling = true;
}

void decide_tell(struct scheduler *e, struct entry *ent, struct waiter *a)
{
	struct answer part;

	if (ent->txn->nr_updates > ANSWER_PART) {
		waiter_push(&ent->waiters, a);
		begin_telling(e, ent);
		return;
	}
	part.told = 0;
	next_part(e, ent, &part);
	waiter_answer(&e->waiters, a, &part.ans);
}

void decide_finish(struct scheduler *e, struct entry *ent)
{
	assert(ent->nr_undecided == 0);
	tell_io(e, ent->txn);
	scheduler_time(e, ent, false);
	fairness_leave(ent);
	quota_give(&e->quotas, ent->quota.of_user, ent->txn, ent->quota.sender);
	quota_give(&e->quotas, ent->quota.of_repo, ent->txn, ent->quota.sender);
	ent->quota.of_user = ent->quota.of_repo = NULL;
	if (entry_is_session(ent))
		session_over(e, ent);
	entry_move(ent, ENTRY_DECIDED);
	begin_telling(e, ent);
	if (ent->txn->req.gate == REFD_GATE_COMMITTED)
		gate_recorded(&e->gate, ent->txn);
	/* A gate without a record did nothing, so no number counts it. */
	if (!ent->txn->replayed && !is_question(ent->txn) &&
	    (ent->txn->req.gate == REFD_GATE_NONE ||
		ent->txn->nr_of[REFD_OK] > 0))
		count_outcome(e, ent);
}

static void let_go(struct scheduler *e, struct txn *txn)
{
	if (txn->repo != NULL)
		store_release(e->store, txn->repo);
	txn->repo = NULL;
}

/* All waiters have their answer. An entry that waits only for its record
 * releases the repository, because the wait may be long, and a failed file
 * system is closed only when nobody uses it. */
static void all_told(struct scheduler *e, struct entry *ent)
{
	DL_DELETE2(*list_of(e, ent), ent, prev_telling, next_telling);
	ent->is_telling = false;
	/* Told once more. */
	if (ent->notes.is_kept || ent->notes.is_riding)
		return;
	if (ent->txn->repo == NULL || !unrecorded_keep(&e->unrecorded, ent))
		decide_forget(e, ent);
	else
		let_go(e, ent->txn);
}

void decide_tell_part(struct scheduler *e, struct entry *ent)
{
	struct answer a;

	a.told = ent->nr_told;
	next_part(e, ent, &a);
	if (a.ans.goes_on && !waiter_is_mute(ent->waiters)) {
		ent->nr_told = a.told;
		waiter_part(ent->waiters, &a.ans);
		return;
	}
	ent->nr_told = 0;
	waiter_answer(&e->waiters, waiter_pop(&ent->waiters), &a.ans);
}

/* In the order of decision. */
static void answer_small(struct scheduler *e)
{
	size_t nr = session_tell_some(e, TELL_AT_ONCE);
	struct entry *ent;

	while ((ent = e->decided) != NULL && nr < TELL_AT_ONCE) {
		for (; ent->waiters != NULL && nr < TELL_AT_ONCE;
		    nr += 1 + ent->txn->nr_updates)
			decide_tell_part(e, ent);
		if (ent->waiters == NULL)
			all_told(e, ent);
	}
}

/* The same calls as session_tell_part(), for decided transactions. */
static enum told tell_decided(struct scheduler *e)
{
	struct entry *ent;

	while ((ent = e->decided_large) != NULL && ent->waiters == NULL)
		all_told(e, ent);
	if (ent == NULL)
		return TOLD_NONE;
	decide_tell_part(e, ent);
	if (ent->nr_told > 0)
		return TOLD_PART;
	DL_DELETE2(e->decided_large, ent, prev_telling, next_telling);
	DL_APPEND2(e->decided_large, ent, prev_telling, next_telling);
	return TOLD_ALL;
}

/* Sends a large result in parts, and the loop runs between the parts. Meanwhile
 * smaller answers pass. Other large results wait, because a connection gets one
 * answer in parts at a time. After each answer a result of another transaction
 * and of another kind has its turn. Otherwise a client that asks for the same
 * result again and again would keep out all others. */
static void answer_large(struct scheduler *e)
{
	static enum told (*const tell[])(
	    struct scheduler *) = { session_tell_part, tell_decided,
		ask_tell_part };
	const unsigned nr = sizeof(tell) / sizeof(*tell);
	enum told told = TOLD_NONE;
	unsigned i;

	for (i = 0; i < nr && told == TOLD_NONE; i++) {
		told = tell[e->large_turn](e);
		if (told != TOLD_PART)
			e->large_turn = (e->large_turn + 1) % nr;
	}
}

void decide_answer_some(struct scheduler *e)
{
	answer_small(e);
	answer_large(e);
}

void decide_forget(struct scheduler *e, struct entry *ent)
{
	struct txn *txn = ent->txn;

	let_go(e, txn);
	e->held_bytes -= txn->req.bytes;
	table_remove(&e->table, ent);
	if (txn->nr_updates > ANSWER_PART)
		store_discard(e->store, txn);
	else
		txn_free(txn);
}
