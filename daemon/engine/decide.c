/*
 * Happy path:
 *	finish	all updates of a transaction are decided: it leaves the queue
 *	answer	everyone who asked, the first and those that joined
 *	notes	what the journal does not know yet keeps it in the table
 *	forget	recorded: the journal answers from now on
 *
 * Failure modes, each a status:
 *	deadline, cancel, stop		what is undecided, if no window has it
 *	a lock held for too long	locked
 *	an atomic sibling failed	aborted
 * Answers are given from engine_run() alone, when all else is in order: a
 * callback may submit, cancel or forget.
 */
#include <assert.h>

#include <utlist.h>

#include "daemon/engine/state.h"

void decide_count(struct txn_update *u)
{
	entry_of(u)->nr_undecided--;
	notes_add(u);
}

void decide(struct engine *e, struct txn_update *u, enum refd_status status,
    const char *text, int64_t now_ns)
{
	if (u->name != NULL)
		names_remove(&e->names, u, now_ns);
	txn_decide(u, status, text);
	decide_count(u);
}

void decide_rest(struct engine *e, struct entry *ent, enum refd_status status,
    const char *text, int64_t now_ns)
{
	struct txn *txn = ent->txn;
	size_t i;

	for (i = 0; i < txn->nr_updates && ent->nr_undecided > 0; i++)
		if (txn->updates[i].status == REFD_PENDING)
			decide(e, &txn->updates[i], status, text, now_ns);
}

void decide_locked(struct engine *e, struct txn_update *u, int64_t now_ns)
{
	if (u->name != NULL)
		names_remove(&e->names, u, now_ns);
	txn_decidef(u, REFD_LOCKED,
	    "Unable to create '%s.lock': another process holds it; remove the "
	    "file by hand if that process has crashed",
	    u->ask->name);
	decide_count(u);
}

void decide_late(struct engine *e, struct entry *ent, int64_t now_ns)
{
	struct txn *txn = ent->txn;
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status == REFD_PENDING &&
		    txn->updates[i].locked_since_ns != 0)
			decide_locked(e, &txn->updates[i], now_ns);
	if (!decide_siblings(e, ent, now_ns))
		decide_rest(e, ent, REFD_DEADLINE, NULL, now_ns);
}

bool decide_siblings(struct engine *e, struct entry *ent, int64_t now_ns)
{
	struct txn *txn = ent->txn;
	size_t i;

	if (!txn->req.atomic || ent->nr_undecided == txn->nr_updates)
		return false;
	/* All or nothing, so nothing of it can have succeeded yet. */
	for (i = 0; i < txn->nr_updates; i++)
		assert(txn->updates[i].status != REFD_OK ||
		    ent->nr_undecided == 0);
	decide_rest(e, ent, REFD_ABORTED, NULL, now_ns);
	return true;
}

void decide_clash(struct engine *e, struct txn_update *u,
    const struct txn_update *other, int64_t now_ns)
{
	struct entry *ent = entry_of(u);

	names_remove(&e->names, u, now_ns);
	txn_decidef(u, REFD_CONFLICT,
	    "cannot process '%s' and '%s' at the same time", other->ask->name,
	    u->ask->name);
	decide_count(u);
	decide_siblings(e, ent, now_ns);
	decide_finish(e, ent);
}

/* ---- answering ---- */

const char *decide_shared_text(const struct txn *txn)
{
	return txn->refused != REFD_OK ? txn->why : NULL;
}

static void count_outcome(struct engine *e, const struct txn *txn)
{
	size_t i;

	e->stats.transactions++;
	switch (txn_outcome(txn)) {
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
	for (i = 0; i < txn->nr_updates; i++) {
		if (txn->updates[i].status == REFD_OK)
			e->stats.refs_ok++;
		else
			e->stats.refs_failed++;
	}
}

void decide_finish(struct engine *e, struct entry *ent)
{
	assert(ent->nr_undecided == 0);
	arrive_time(e, ent, false);
	turns_leave(ent);
	entry_move(ent, ENTRY_DECIDED);
	DL_APPEND(e->decided, ent);
	if (!ent->txn->replayed)
		count_outcome(e, ent->txn);
}

void decide_answer_all(struct engine *e)
{
	struct refd_answer ans;
	struct entry *ent;
	struct asker *a;

	while ((ent = e->decided) != NULL) {
		DL_DELETE(e->decided, ent);
		while ((a = asker_pop(&ent->askers)) != NULL) {
			answer_results(&ans, ent->txn, ent->results,
			    decide_shared_text(ent->txn));
			askers_answer(&e->askers, a, &ans);
		}
		if (!notes_keep(&e->notes, ent))
			decide_forget(e, ent);
	}
}

void decide_forget(struct engine *e, struct entry *ent)
{
	struct txn *txn = ent->txn;

	if (txn->repo != NULL)
		e->store.release(e->store.ctx, txn->repo);
	txn->repo = NULL;
	e->held_bytes -= txn->req.bytes;
	table_remove(&e->table, ent);
}
