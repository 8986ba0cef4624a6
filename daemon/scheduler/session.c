/*
 * Sessions: transactions that stop when they have all locks. The client then
 * says commit or abort.
 *
 * Happy path:
 *	begin		admitted and queued as any transaction
 *	prepared	its batch, which held nothing else, took all locks. The
 *			names are released, and other updates of these names
 *			find the locks
 *	tell		the client is told
 *	end		the same batch goes to the store once more, at once,
 *			even if the store is busy: locks are held
 *	ended		all updates are decided
 * The batch is kept in between, so that ending a session needs no memory. A
 * session without updates has no batch, and waits for nothing.
 *
 * Failure modes:
 *	an update is locked or must be tried again	waits as any other
 *			update, and no lock is held (on_batch_done.c)
 *	everything is decided without a lock	the session is decided
 *	abort, cancel	the batch releases the locks; its updates get aborted
 *	the client is gone, or the daemon is told twice to stop	the same, also
 *			if the session is prepared only afterwards
 *	prepared for too long	the same, with status deadline. A later commit
 *			gets these results
 *	a commit is under way	the commit goes on
 */
#include <assert.h>

#include <utlist.h>

#include "daemon/scheduler/state.h"

void session_begin(struct scheduler *e, struct entry *ent, void *client)
{
	ent->session.client = client;
	DL_APPEND2(e->sessions, ent, session.prev, session.next);
}

void session_over(struct scheduler *e, struct entry *ent)
{
	DL_DELETE2(e->sessions, ent, session.prev, session.next);
}

bool session_is_ending(const struct entry *ent)
{
	return ent->session.phase == BATCH_COMMIT ||
	    ent->session.phase == BATCH_ABORT;
}

/* ---- prepared ---- */

void session_hold(struct scheduler *e, struct entry *ent, struct batch *b,
    int64_t now_ns)
{
	entry_move(ent, ENTRY_PREPARED);
	ent->session.batch = b;
	fairness_leave(ent);
	e->stats.sessions_prepared++;
	ent->session.is_untold = true;
	DL_APPEND(e->untold, ent);
	ent->prepared_ns = now_ns;
	ent->deadline_ns =
	    now_ns + quota_wait_ns(&e->cfg.quotas, ent->txn, e->cfg.session_ns);
	on_admitted_time(e, ent, true);
	if (e->is_hurrying)
		entry_give_up(ent, REFD_ABORTED, "the daemon is stopping");
	if (ent->end_status != REFD_OK)
		session_end(e, ent, BATCH_ABORT);
}

void session_prepared(struct scheduler *e, struct batch *b, int64_t now_ns)
{
	struct txn_slice *slice = &b->slices[0];
	struct txn_update *u;
	size_t i, nr = 0;

	assert(b->nr_slices == 1);
	measure_batch(&e->measure, b, slice->nr, false, now_ns);
	for (i = 0; i < slice->nr; i++) {
		u = slice->updates[i];
		ref_queue_let_go(&e->ref_queues, u, now_ns);
		if (u->status != REFD_PENDING) {
			decide_count(u);
			continue;
		}
		assert(u->again == TXN_AGAIN_NO);
		slice->updates[nr++] = u;
	}
	slice->nr = nr;
	session_hold(e, slice->txn->scheduler, b, now_ns);
}

static void told(struct scheduler *e, struct entry *ent)
{
	ent->session.is_untold = false;
	DL_DELETE(e->untold, ent);
}

void session_tell_all(struct scheduler *e)
{
	struct entry *ent;
	struct waiter *a;

	/* A callback may end the session. Then the session is no longer in the
	 * list, and the other waiters get its results. */
	while ((ent = e->untold) != NULL) {
		a = waiter_pop(&ent->waiters);
		if (a == NULL)
			told(e, ent);
		else
			decide_tell(e, ent, a);
	}
}

/* ---- the end ---- */

void session_end(struct scheduler *e, struct entry *ent, enum batch_session how)
{
	struct batch *b = ent->session.batch;
	size_t i;

	assert(ent->state == ENTRY_PREPARED);
	on_admitted_time(e, ent, false);
	if (ent->session.is_untold)
		told(e, ent);
	if (how == BATCH_COMMIT)
		e->stats.sessions_committed++;
	else
		e->stats.sessions_aborted++;
	ent->session.phase = how;
	if (b == NULL) {
		decide_finish(e, ent);
		return;
	}
	ent->session.batch = NULL;
	b->session = how;
	b->locked_ns = b->unlocked_ns = 0;
	b->lock_ns = b->flush_ns = b->publish_ns = 0;
	for (i = 0; i < b->slices[0].nr; i++)
		b->slices[0].updates[i]->in_batch = true;
	entry_move(ent, ENTRY_IN_BATCH);
	e->nr_batches++;
	e->stats.batches++;
	e->store.apply(e->store.ctx, b);
}

void session_ended(struct scheduler *e, struct batch *b, int64_t now_ns)
{
	struct txn_slice *slice = &b->slices[0];
	struct entry *ent = slice->txn->scheduler;
	bool all_recorded = true;
	struct txn_update *u;
	size_t i;

	measure_batch(&e->measure, b, slice->nr, false, now_ns);
	on_batch_done_lsn(slice);
	for (i = 0; i < slice->nr; i++) {
		u = slice->updates[i];
		u->in_batch = false;
		if (b->session == BATCH_ABORT)
			txn_decide(u, ent->end_status, ent->end_text);
		assert(u->status != REFD_PENDING);
		all_recorded = all_recorded && u->recorded;
		decide_count(u);
	}
	if (b->session == BATCH_COMMIT)
		unrecorded_rode(ent, all_recorded);
	decide_finish(e, ent);
	batch_free(b);
}

void session_give_up(struct scheduler *e, struct entry *ent,
    enum refd_status status, const char *text)
{
	/* If a commit is under way, the commit decides the session. */
	entry_give_up(ent, status, text);
	switch (ent->state) {
	case ENTRY_WAITING:
		decide_rest(e, ent, status, text, e->wall_at_ns);
		decide_finish(e, ent);
		break;
	case ENTRY_PREPARED:
		session_end(e, ent, BATCH_ABORT);
		break;
	case ENTRY_ADMITTING:
	case ENTRY_DIRECT:
		on_admitted_give_up(e, ent, status, text);
		break;
	case ENTRY_IN_BATCH:
	case ENTRY_DECIDED:
		break;
	}
}
