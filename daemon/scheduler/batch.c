/*
 * Forms batches: selects the updates that go to the store together.
 *
 * Happy path:
 *	turn	every ready repository gets one turn per batch
 *	take	takes the free updates of its transactions, up to its share
 *	unrecorded	outcomes that the journal does not have yet go along
 *			(unrecorded.c)
 *
 * A repository alone may fill the batch. The time of a batch grows with its
 * refs, so a very large push would delay all transactions of the same batch.
 * Therefore several ready repositories get equal shares, which have a limit.
 *
 * A repository with a large packed-refs gets separate batches after the store
 * has given back an update for this reason. Otherwise the updates of other
 * repositories would wait for the rewriting of the file.
 *
 * The deletions of a repository are in one batch at a time, because a deletion
 * holds packed-refs.lock until it is published. A second batch with deletions
 * would wait for this lock, and all its other updates would wait, too. A
 * transaction that has only deletions left is parked until the first batch is
 * back.
 *
 * A repository with reftables is in one batch at a time, because a batch
 * changes one list for all refs.
 *
 * A transaction is in one batch at a time, because the batch owns the whole
 * transaction. So a very large transaction leaves the other workers free.
 *
 * Failure modes:
 *	a name is not free	blocked (ref_queue.c); others go
 *	a transaction that goes whole does not fit	the batch closes. The
 *			transaction begins the next batch, and goes even if it
 *			is larger than a batch
 *	a session	the batch closes, too; the batch of a session holds
 *			nothing else
 *	a transaction has waited for long	put aside: first the store
 *			checks its objects again
 *	out of memory	the batch closes with the updates so far
 */
#include <stdlib.h>

#include <utlist.h>

#include "daemon/scheduler/state.h"

/* With so many unrecorded updates a flush of their own is worth the cost. */
#define UNRECORDED_MAX 1000
/* While several repositories are ready, a repository gets at most one share of
 * a batch. */
#define SHARES 8

enum take_result {
	TAKEN, /* or blocked: the entry is not ready any more */
	CLOSED /* the batch takes no more */
};

struct forming {
	struct scheduler *e;
	struct batch *b;
	/* Entries which had their turn, but became ADMITTING, because somebody
	 * may have removed their objects while they waited. A list by next and
	 * prev. */
	struct entry *stale;
	size_t slices_room;
	size_t nr_live, nr_unrecorded;
};

static enum take_result closed(struct forming *g, enum batch_close why)
{
	g->b->closed = why;
	return CLOSED;
}

static size_t min_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A slice with room for NR updates, not counted yet; NULL: no memory. */
static struct txn_slice *slice_new(struct forming *g, const struct entry *ent,
    size_t nr)
{
	struct batch *b = g->b;
	struct txn_slice *slice, *more;
	size_t room = g->slices_room;

	if (b->nr_slices == room) {
		room = room > 0 ? 2 * room : 16;
		more = realloc(b->slices, room * sizeof(*more));
		if (more == NULL)
			return NULL;
		b->slices = more;
		g->slices_room = room;
	}
	slice = &b->slices[b->nr_slices];
	*slice = (struct txn_slice){ .txn = ent->txn };
	slice->updates = calloc(nr, sizeof(struct txn_update *));
	return slice->updates != NULL ? slice : NULL;
}

/* Does no different batch hold deletions of Q? */
static bool may_delete(const struct forming *g, const struct repo_queue *q)
{
	return q->deleting_in == NULL || q->deleting_in == g->b;
}

static void slice_hold(struct forming *g, struct txn_slice *slice,
    struct txn_update *u)
{
	if (txn_update_deletes(u))
		entry_of(u)->queue->deleting_in = g->b;
	ref_queue_hold(&g->e->ref_queues, u);
	txn_update_try(u);
	slice->updates[slice->nr++] = u;
	g->nr_live++;
}

/* SLICE has an update. Closes the slice, with the unrecorded updates of its
 * transaction. */
static void slice_close(struct forming *g, struct txn_slice *slice,
    struct entry *ent, size_t nr_unrecorded)
{
	unrecorded_ride(ent, slice, nr_unrecorded);
	g->nr_unrecorded += nr_unrecorded;
	g->b->nr_slices++;
	ent->goes_first = false;
	entry_move(ent, ENTRY_IN_BATCH);
	fairness_refresh(ent);
}

static enum take_result take_some(struct forming *g, struct entry *ent,
    size_t room)
{
	size_t nr = min_of(ent->nr_up, room);
	size_t nr_unrecorded = unrecorded_nr(ent, g->e->cfg.batch_refs);
	const bool deletes = may_delete(g, ent->queue);
	struct txn_update *u;
	struct txn_slice *slice;

	if (ref_queue_first_up(ent, deletes) == NULL) {
		fairness_park(ent);
		return TAKEN;
	}
	slice = slice_new(g, ent, nr + nr_unrecorded);
	if (slice == NULL)
		return closed(g, BATCH_CLOSE_MEMORY);
	while (slice->nr < nr && (u = ref_queue_first_up(ent, deletes)) != NULL)
		slice_hold(g, slice, u);
	slice_close(g, slice, ent, nr_unrecorded);
	return TAKEN;
}

static bool fits_whole(const struct forming *g, const struct entry *ent)
{
	if (g->nr_live == 0)
		return true;
	return !entry_is_session(ent) &&
	    g->nr_live + ent->nr_undecided <= g->e->batch_refs;
}

static enum take_result take_whole(struct forming *g, struct entry *ent)
{
	const bool deletes = ref_queue_deletion(ent) != NULL;
	struct txn_slice *slice;
	size_t nr_unrecorded = 0;

	if (!fits_whole(g, ent)) {
		fairness_again(ent->queue);
		return closed(g,
		    entry_is_session(ent) ? BATCH_CLOSE_SESSION :
					    BATCH_CLOSE_WHOLE);
	}
	if (deletes && !may_delete(g, ent->queue)) {
		fairness_park(ent);
		return TAKEN;
	}
	/* The preparation of a session commits nothing, so it cannot record
	 * outcomes. */
	if (!entry_is_session(ent))
		nr_unrecorded = unrecorded_nr(ent, g->e->cfg.batch_refs);
	slice = slice_new(g, ent, ent->nr_undecided + nr_unrecorded);
	if (slice == NULL)
		return closed(g, BATCH_CLOSE_MEMORY);
	if (deletes)
		ent->queue->deleting_in = g->b;
	ref_queue_hold_all(ent);
	slice->nr = slice->nr_whole = ent->nr_undecided;
	g->nr_live += slice->nr;
	slice_close(g, slice, ent, nr_unrecorded);
	if (!entry_is_session(ent))
		return TAKEN;
	ent->session.phase = g->b->session = BATCH_PREPARE;
	return closed(g, BATCH_CLOSE_SESSION);
}

/* Does the last check of the objects of ENT still count? Somebody may remove
 * objects while ENT waits. So a check counts for a limited time only, and not
 * after a pause. On the direct way the store checks the time (goes_directly()
 * of completions.c). In a gate git has written the refs, so git keeps their
 * objects. */
static bool is_fresh(const struct scheduler *e, const struct entry *ent)
{
	return ent->txn->repo == NULL || ent->txn->req.gate != REFD_GATE_NONE ||
	    (ent->nr_pauses == e->nr_pauses &&
		txn_is_fresh(ent->txn, e->turn_ns));
}

static void put_aside(struct forming *g, struct entry *ent)
{
	entry_move(ent, ENTRY_ADMITTING);
	fairness_refresh(ent);
	DL_APPEND(g->stale, ent);
}

/* Takes updates of repository Q, up to its share. */
static enum take_result take_share(struct forming *g, struct repo_queue *q,
    size_t share)
{
	size_t before = g->nr_live, room;
	enum take_result taken = TAKEN;
	struct entry *ent;

	while (taken == TAKEN && (ent = q->ready) != NULL &&
	    g->nr_live - before < share && g->nr_live < g->e->batch_refs) {
		if (!is_fresh(g->e, ent)) {
			put_aside(g, ent);
			continue;
		}
		room = min_of(share - (g->nr_live - before),
		    g->e->batch_refs - g->nr_live);
		taken = ent->goes_whole ? take_whole(g, ent) :
					  take_some(g, ent, room);
	}
	return taken;
}

/* Takes updates of Q as take_share() does. If Q writes alone, it has one batch
 * at a time, so it has no further turn until the batch is back. */
static enum take_result take_alone(struct forming *g, struct repo_queue *q,
    size_t share)
{
	const size_t before = g->nr_live;
	enum take_result taken = take_share(g, q, share);

	if (q->writes_alone && g->nr_live > before)
		fairness_hold(q, g->b);
	return taken;
}

static bool goes_apart(const struct forming *g, const struct repo_queue *q)
{
	const struct entry *first;

	if (g->b->nr_slices == 0)
		return false;
	first = g->b->slices[0].txn->scheduler;
	return q->goes_alone || first->queue->goes_alone;
}

static void take_turns(struct forming *g)
{
	size_t nr = g->e->fairness.nr_ready, share = g->e->batch_refs;
	enum take_result taken = TAKEN;
	struct repo_queue *q, *passed = NULL;

	if (nr > 1)
		share = min_of(share / nr, g->e->cfg.batch_refs / SHARES);
	if (share == 0)
		share = 1;
	while (nr-- > 0 && taken == TAKEN && g->nr_live < g->e->batch_refs &&
	    (q = fairness_next(&g->e->fairness)) != NULL)
		if (!goes_apart(g, q))
			taken = take_alone(g, q, share);
		else if (passed == NULL)
			passed = q;
	/* The repository that was passed over begins the next batch, because
	 * otherwise it could be passed over for ever. */
	if (passed != NULL)
		fairness_again(passed);
	if (taken == CLOSED)
		return;
	if (g->nr_live >= g->e->batch_refs)
		g->b->closed = BATCH_CLOSE_REFS;
	else if (g->e->fairness.ready != NULL)
		g->b->closed = BATCH_CLOSE_SHARES;
}

/* Takes unrecorded updates of decided transactions. */
static void take_unrecorded(struct forming *g)
{
	struct unrecorded *unrecorded = &g->e->unrecorded;
	struct txn_slice *slice;
	struct entry *ent;
	size_t nr;

	while ((ent = unrecorded->first) != NULL &&
	    g->nr_unrecorded < g->e->cfg.batch_refs) {
		nr =
		    unrecorded_nr(ent, g->e->cfg.batch_refs - g->nr_unrecorded);
		slice = slice_new(g, ent, nr);
		if (slice == NULL)
			return;
		unrecorded_unkeep(unrecorded, ent);
		ent->notes.is_riding = true;
		unrecorded_ride(ent, slice, nr);
		g->nr_unrecorded += nr;
		g->b->nr_slices++;
	}
}

static bool unrecorded_is_due(const struct scheduler *e)
{
	return e->unrecorded.nr > 0 &&
	    (e->is_draining || e->is_closed ||
		e->unrecorded.nr > UNRECORDED_MAX ||
		e->held_bytes > e->cfg.max_waiting_bytes / 2);
}

static void lend(struct scheduler *e, struct batch *b)
{
	size_t i;

	for (i = 0; i < b->nr_slices; i++)
		scheduler_time(e, b->slices[i].txn->scheduler, false);
	e->nr_batches++;
}

bool batch_may_go(const struct scheduler *e)
{
	return !e->is_paused && e->nr_batches < store_max_batches(e->store) &&
	    store_takes(e->store);
}

struct batch *batch_next(struct scheduler *e)
{
	const bool unrecorded_due = unrecorded_is_due(e);
	struct forming g = { .e = e };
	struct entry *ent;

	if ((e->fairness.ready == NULL && !unrecorded_due) || !batch_may_go(e))
		return NULL;
	g.b = calloc(1, sizeof(*g.b));
	if (g.b == NULL)
		return NULL;
	take_turns(&g);
	if (g.b->session == BATCH_WHOLE && (g.nr_live > 0 || unrecorded_due))
		take_unrecorded(&g);
	if (g.b->nr_slices > 0) {
		lend(e, g.b);
	} else {
		batch_free(g.b);
		g.b = NULL;
	}
	/* The stale entries keep their place at all names until the store has
	 * checked their objects once more. */
	while ((ent = g.stale) != NULL) {
		DL_DELETE(g.stale, ent);
		ent->txn->readmitted = true;
		scheduler_admit(e, ent);
	}
	return g.b;
}

void batch_hand_over(struct scheduler *e)
{
	struct batch *b;

	while ((b = batch_next(e)) != NULL) {
		e->stats.batches++;
		store_apply(e->store, b);
	}
}

struct batch *batch_of_whole(const struct entry *ent)
{
	struct forming g = { .b = calloc(1, sizeof(*g.b)) };
	struct txn_slice *slice =
	    g.b != NULL ? slice_new(&g, ent, ent->nr_undecided) : NULL;

	if (slice == NULL) {
		batch_free(g.b);
		return NULL;
	}
	slice->nr = slice->nr_whole = ent->nr_undecided;
	g.b->nr_slices++;
	return g.b;
}
