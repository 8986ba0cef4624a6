/*
 * Sessions: transactions that stop when they have all locks. The client then
 * says commit or abort.
 *
 * Happy path:
 *	begin		admitted and queued as any transaction
 *	prepared	its batch, which held nothing else, took all locks. The
 *			names are released, and other updates of these names
 *			find the locks. If other machines share the rows of the
 *			session, its names stay held, and other updates wait
 *			for the names
 *	tell		the client is told, in parts
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
 *	the client is gone, or the daemon is told twice to stop	as an abort,
 *			also if the session is prepared only afterwards
 *	prepared for too long	as an abort, with the status deadline. A later
 *			commit gets these results
 *	the node does not lead any more	as an abort, with the status busy. A
 *			lease ends by the clock, so the loop has to look
 *	a commit is under way	the commit goes on
 *	the end is asked for while the client is being told	the end begins
 *			after the last part
 */
#include <assert.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/state.h"

/* Prepared sessions that share rows are looked at so often. */
#define WATCH_NS (100 * 1000000LL)

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

static struct entry **untold_list(struct scheduler *e, const struct entry *ent)
{
	return ent->txn->nr_updates > ANSWER_PART ? &e->untold_large :
						    &e->untold;
}

void session_hold(struct scheduler *e, struct entry *ent, struct batch *b,
    int64_t now_ns)
{
	entry_move(ent, ENTRY_PREPARED);
	ent->session.batch = b;
	fairness_leave(ent);
	e->stats.sessions_prepared++;
	ent->session.is_untold = true;
	DL_APPEND(*untold_list(e, ent), ent);
	ent->prepared_ns = now_ns;
	ent->deadline_ns = now_ns + e->cfg.session_ns;
	scheduler_time(e, ent, true);
	if (ent->end_status != REFD_OK)
		session_end(e, ent, BATCH_ABORT);
}

bool session_update_prepared(struct scheduler *e, struct txn_update *u,
    int64_t now_ns)
{
	/* A shared row cannot be taken back after its commit, so meanwhile no
	 * other update may take a name above or below. */
	if (u->txn->replica != NULL && u->status == REFD_PENDING)
		ref_queue_keep(&e->ref_queues, u);
	else
		ref_queue_let_go(&e->ref_queues, u, now_ns);
	if (u->status != REFD_PENDING) {
		decide_count(u);
		return false;
	}
	assert(u->again == TXN_AGAIN_NO);
	/* The batch stays, and goes to the store once more. */
	u->in_batch = true;
	return true;
}

static void told(struct scheduler *e, struct entry *ent)
{
	ent->session.is_untold = false;
	DL_DELETE(*untold_list(e, ent), ent);
}

void session_tell(struct scheduler *e, struct entry *ent, struct waiter *a)
{
	waiter_push(&ent->waiters, a);
	if (!ent->session.is_untold)
		DL_APPEND(*untold_list(e, ent), ent);
	ent->session.is_untold = true;
}

size_t session_tell_some(struct scheduler *e, size_t max)
{
	size_t nr = 0;
	struct entry *ent;

	/* A callback may end the session, which then leaves the list and gives
	 * its results to the other waiters. So the list is read anew after each
	 * answer. */
	while (nr < max && (ent = e->untold) != NULL) {
		nr += 1 + ent->txn->nr_updates;
		if (ent->waiters == NULL)
			told(e, ent);
		else
			decide_tell_part(e, ent);
	}
	return nr;
}

/* ---- the end ---- */

/* Begins the end which PHASE names. */
static void end(struct scheduler *e, struct entry *ent)
{
	struct batch *b = ent->session.batch;

	if (ent->session.is_untold)
		told(e, ent);
	if (ent->session.phase == BATCH_COMMIT)
		e->stats.sessions_committed++;
	else
		e->stats.sessions_aborted++;
	if (b == NULL) {
		decide_finish(e, ent);
		return;
	}
	ent->session.batch = NULL;
	b->session = ent->session.phase;
	b->locked_ns = b->unlocked_ns = 0;
	b->lock_ns = b->flush_ns = b->publish_ns = 0;
	entry_move(ent, ENTRY_IN_BATCH);
	e->nr_batches++;
	e->stats.batches++;
	store_apply(e->store, b);
}

void session_end(struct scheduler *e, struct entry *ent, enum batch_session how)
{
	assert(ent->state == ENTRY_PREPARED);
	if (session_is_ending(ent))
		return;
	ent->session.phase = how;
	scheduler_time(e, ent, false);
	/* An answer that has begun goes on, so the store must not have the
	 * transaction meanwhile. */
	if (ent->nr_told == 0)
		end(e, ent);
}

/* The locks of a node that does not lead any more would hold up the rows of the
 * next leader, so its sessions end. */
int64_t session_end_outdated(struct scheduler *e, int64_t now_ns)
{
	struct entry *ent, *next;
	bool is_watched = false;

	DL_FOREACH_SAFE2(e->sessions, ent, next, session.next)
	if (ent->state == ENTRY_PREPARED && !session_is_ending(ent)) {
		if (!store_may_commit(e->store, ent->txn))
			decide_give_up(e, ent, BUSY(GROUP), now_ns);
		is_watched = is_watched || ent->txn->replica != NULL;
	}
	return is_watched ? now_ns + WATCH_NS : INT64_MAX;
}

enum told session_tell_part(struct scheduler *e)
{
	struct entry *ent;

	while ((ent = e->untold_large) != NULL && ent->waiters == NULL)
		told(e, ent);
	if (ent == NULL)
		return TOLD_NONE;
	decide_tell_part(e, ent);
	if (ent->nr_told > 0)
		return TOLD_PART;
	/* A callback may have ended the session. */
	if (ent == e->untold_large) {
		DL_DELETE(e->untold_large, ent);
		DL_APPEND(e->untold_large, ent);
	}
	if (ent->state == ENTRY_PREPARED && session_is_ending(ent))
		end(e, ent);
	return TOLD_ALL;
}

void session_update_ended(struct scheduler *e, const struct batch *b,
    struct txn_update *u, int64_t now_ns)
{
	const struct entry *ent = entry_of(u);

	if (u->ref_queue != NULL)
		ref_queue_let_go(&e->ref_queues, u, now_ns);
	u->in_batch = false;
	if (b->session == BATCH_ABORT)
		txn_decide(u, ent->end_status, ent->end_text);
	assert(u->status != REFD_PENDING);
	decide_count(u);
}
