/*
 * Happy path: every update of the batch is decided and recorded. Its name rests
 * for as long as the lock was held, so that plain git gets a turn. Transactions
 * without undecided updates are decided. In the order of the calls:
 *	on_batch_done > batch_comes_back
 *		updates_back > update_back > recorded_back	each update
 *		batch_is_back > entries_back > entry_back	each transaction
 *			decide_finish	if no update is left
 *
 * An update that comes back undecided keeps its place:
 *	later	the store had no time. The update goes first in the next
 *		batch, because otherwise the same updates could always be last
 *		in the order of the store. The size of batches falls to the
 *		number that the store had time for, and grows again by an
 *		eighth
 *	alone	again after 10 ms; then, as long as the repository has
 *		something to do, in separate batches of this repository
 *	locked	again after 1, 2, 4 ... 50 ms, and a last time when the wait
 *		for locks ends; then the status is locked. An update that found
 *		no lock itself, and was given back because of a locked update,
 *		is tried again together with the locked update. If the lock is
 *		that of a list of reftables, the whole repository waits for the
 *		time until the next try
 *	reopen	all undecided updates are admitted again
 * A large batch comes back in parts, one part per run of the scheduler.
 * Meanwhile its transactions stay IN_BATCH, and small batches pass.
 *
 * Decided updates without a record go to unrecorded.c, and the updates of
 * sessions to session.c. If a session could not be prepared, its updates wait
 * like others. An update whose old value was only read for a gate (BATCH_LOOK)
 * is only counted.
 *
 * Failure modes: if an update of an atomic transaction fails or gives up, the
 * whole transaction is aborted. For updates that the store gave back, a cancel
 * and a stop take effect here, and a deadline soon after (scheduler_run()).
 */
#include <assert.h>

#include <utlist.h>

#include "daemon/base/probe.h"
#include "daemon/scheduler/state.h"

#define MS             1000000
#define BACKOFF_MIN_NS (1 * MS)
#define BACKOFF_MAX_NS (50 * MS)
#define ALONE_AFTER_NS (10 * MS)
/* So long an update waits until its ref has the acknowledged value again. */
#define DIVERGED_NS ((int64_t)10000 * MS)

/* The most updates of a batch that comes back at once, and the updates in a
 * part of a larger batch. */
#define SMALL_BATCH  1024
#define BACK_AT_ONCE 512

/* The batch that comes back, how far it is back (state.h), and now. */
struct back {
	struct scheduler *e;
	struct batch_return *coming;
	int64_t now_ns;
};

/* How long U, which is locked, may wait for the lock. */
static int64_t lock_wait_ns(const struct scheduler *e,
    const struct txn_update *u)
{
	const struct refd_request *req = &u->txn->req;

	if (txn_update_missed(u, "packed-refs")) {
		if (req->has_packed_refs_timeout)
			return (int64_t)req->packed_refs_timeout_ms * MS;
	} else if (req->has_ref_lock_timeout) {
		return (int64_t)req->ref_lock_timeout_ms * MS;
	}
	return e->cfg.lock_wait_ns;
}

/* Sets the next try. The wait equals the time waited so far, so it doubles.
 * True: the limit MOST_NS is reached. */
static bool waits_on(struct back *back, struct txn_update *u, int64_t most_ns)
{
	int64_t wait_ns, end_ns;

	if (u->locked_since_ns == 0)
		u->locked_since_ns = back->now_ns;
	wait_ns = back->now_ns - u->locked_since_ns;
	PROBE_LOCK_WAIT(&u->txn->req.txid, u->txn->repo_id,
	    u->locked_path != NULL ? u->locked_path : u->ask->name, wait_ns);
	end_ns = u->locked_since_ns + most_ns;
	if (wait_ns < BACKOFF_MIN_NS)
		wait_ns = BACKOFF_MIN_NS;
	if (wait_ns > BACKOFF_MAX_NS)
		wait_ns = BACKOFF_MAX_NS;
	u->retry_ns = back->now_ns + wait_ns;
	if (u->retry_ns > end_ns)
		u->retry_ns = end_ns;
	return end_ns <= back->now_ns;
}

static void undecided_back(struct back *back, struct txn_update *u,
    bool goes_along)
{
	struct entry *ent = entry_of(u);
	bool has_given_up = false;

	u->retry_ns = 0;
	if (goes_along)
		u->again = TXN_AGAIN_NO;
	switch (u->again) {
	case TXN_AGAIN_LATER:
		ent->goes_first = true;
		back->coming->nr_later++;
		break;
	case TXN_AGAIN_ALONE:
		ent->queue->goes_alone = true;
		u->retry_ns = back->now_ns + ALONE_AFTER_NS;
		break;
	case TXN_AGAIN_LOCKED:
		has_given_up = waits_on(back, u, lock_wait_ns(back->e, u));
		/* The lock of tables.list keeps all updates of the repository
		 * waiting, so one timer is enough. */
		if (txn_update_missed(u, "reftable/tables.list"))
			fairness_rest(ent->queue, u->retry_ns, back->now_ns);
		break;
	case TXN_AGAIN_REOPEN:
		ent->is_misplaced = true;
		break;
	case TXN_AGAIN_DIVERGED:
		has_given_up = waits_on(back, u, DIVERGED_NS);
		break;
	case TXN_AGAIN_NO:
		assert(goes_along);
		break;
	}
	ref_queue_back(&back->e->ref_queues, u, 0, back->now_ns);
	if (has_given_up && u->txn->req.atomic)
		ent->has_given_up = true;
	else if (has_given_up)
		decide_locked(back->e, u, back->now_ns);
}

/* Does SLICE name the locked updates? If not, nobody can tell which updates
 * found a lock, and which updates were only given back together with them. */
static bool names_locks(const struct txn_slice *slice)
{
	size_t i;

	for (i = 0; i < slice->nr; i++)
		if (slice->updates[i]->status == REFD_PENDING &&
		    slice->updates[i]->again == TXN_AGAIN_LOCKED &&
		    slice->updates[i]->locked_path != NULL)
			return true;
	return false;
}

void on_batch_done_lsn(const struct txn_slice *slice)
{
	if (slice->lsn > slice->txn->lsn)
		slice->txn->lsn = slice->lsn;
}

static bool is_prepared(const struct batch *b)
{
	return b->session == BATCH_PREPARE &&
	    b->slices[0].txn->prepared != NULL;
}

/* U is back from a batch that records outcomes. */
static void recorded_back(struct back *back, struct txn_update *u)
{
	struct batch_return *coming = back->coming;

	if (u->status != REFD_PENDING && !u->recorded)
		coming->all_recorded = false;
	/* U was decided before the batch, and went along to be recorded. */
	if (!u->in_batch) {
		unrecorded_add(u);
		return;
	}
	coming->nr_live++;
	if (u->status != REFD_PENDING) {
		ref_queue_back(&back->e->ref_queues, u, coming->rest_until_ns,
		    back->now_ns);
		decide_count(u);
	} else {
		undecided_back(back, u,
		    coming->is_named && u->again == TXN_AGAIN_LOCKED &&
			u->locked_path == NULL);
	}
}

static void update_back(struct back *back, struct txn_slice *slice,
    struct txn_update *u)
{
	struct batch_return *coming = back->coming;

	switch (coming->b->session) {
	case BATCH_PREPARE:
		if (!is_prepared(coming->b))
			break;
		coming->nr_live++;
		if (session_update_prepared(back->e, u, back->now_ns))
			slice->updates[coming->nr_prepared++] = u;
		return;
	case BATCH_COMMIT:
	case BATCH_ABORT:
		coming->nr_live++;
		session_update_ended(back->e, coming->b, u, back->now_ns);
		if (coming->b->session == BATCH_COMMIT && !u->recorded)
			coming->all_recorded = false;
		return;
	case BATCH_LOOK:
		u->in_batch = false;
		decide_count(u);
		return;
	case BATCH_WHOLE:
		break;
	}
	recorded_back(back, u);
}

static void slice_begins(struct batch_return *coming,
    const struct txn_slice *slice)
{
	const struct entry *ent = slice->txn->scheduler;

	on_batch_done_lsn(slice);
	coming->all_recorded = true;
	coming->is_named = ent->goes_whole && !is_prepared(coming->b) &&
	    slice->txn->nr_decided < slice->txn->nr_updates &&
	    names_locks(slice);
}

/* Takes up to MAX updates back. True: all updates of the batch are back. */
static bool updates_back(struct back *back, size_t max)
{
	struct batch_return *coming = back->coming;
	struct txn_slice *slice;

	for (; coming->slice < coming->b->nr_slices; coming->slice++) {
		slice = &coming->b->slices[coming->slice];
		if (coming->nr == 0)
			slice_begins(coming, slice);
		for (; coming->nr < slice->nr; coming->nr++) {
			if (max-- == 0)
				return false;
			update_back(back, slice, slice->updates[coming->nr]);
		}
		unrecorded_rode(slice->txn->scheduler, coming->all_recorded);
		coming->nr = 0;
	}
	return true;
}

/* Ends ENT if its undecided updates must not be tried again. */
static void end_given_up(struct back *back, struct entry *ent)
{
	struct scheduler *e = back->e;
	int64_t now_ns = back->now_ns;

	if (decide_siblings(e, ent, now_ns))
		return;
	if (ent->end_status != REFD_OK)
		decide_end(e, ent, ent->end_status, ent->end_text, now_ns);
	else if (ent->has_given_up)
		decide_late(e, ent, now_ns);
}

static void entry_back(struct back *back, struct entry *ent)
{
	struct scheduler *e = back->e;

	if (ent->state == ENTRY_DECIDED) {
		ent->notes.is_riding = false;
		if (!unrecorded_keep(&e->unrecorded, ent) && !ent->is_telling)
			decide_forget(e, ent);
		return;
	}
	entry_move(ent, ENTRY_WAITING);
	if (ent->nr_undecided > 0)
		end_given_up(back, ent);
	if (ent->state != ENTRY_WAITING)
		return;
	if (ent->nr_undecided == 0) {
		decide_finish(e, ent);
	} else if (ent->is_misplaced) {
		ent->is_misplaced = false;
		on_admitted_again(e, ent, back->now_ns);
	} else {
		scheduler_time(e, ent, true);
		fairness_refresh(ent);
	}
}

static void set_limit(struct scheduler *e, const struct batch_return *coming)
{
	size_t nr = coming->nr_live - coming->nr_later;

	if (coming->nr_later > 0)
		e->batch_refs = nr > 0 ? nr : 1;
	else if (nr >= e->batch_refs)
		e->batch_refs += e->batch_refs / 8 + 1;
	if (e->batch_refs > e->cfg.batch_refs)
		e->batch_refs = e->cfg.batch_refs;
}

/* All updates of the batch are back. */
static void entries_back(struct back *back)
{
	struct batch *b = back->coming->b;
	struct entry *ent;
	size_t i;

	for (i = 0; i < b->nr_slices; i++) {
		ent = b->slices[i].txn->scheduler;
		if (ent->goes_first)
			continue;
		b->slices[i].txn = NULL;
		entry_back(back, ent);
	}
	/* The entries with goes_first come back in reverse order, because each
	 * is put before all others. So their order stays. */
	while (i-- > 0)
		if (b->slices[i].txn != NULL)
			entry_back(back, b->slices[i].txn->scheduler);
}

/* The end of the rest of the names: plain git gets a turn for as long as the
 * locks were held. LOCKED_NS and UNLOCKED_NS are points in time (txn.h). */
static int64_t rest_of(const struct batch *b)
{
	return b->locked_ns != 0 ?
	    b->unlocked_ns + (b->unlocked_ns - b->locked_ns) :
	    0;
}

static void return_begins(struct batch_return *coming, struct batch *b)
{
	*coming = (struct batch_return){ .b = b, .rest_until_ns = rest_of(b) };
}

/* A gate has read the values before a transaction of git. */
static void looked(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	if (ent->txn->is_looked)
		gate_note(&e->gate, ent->txn, store_repo_key(ent->txn->repo),
		    now_ns);
	decide_finish(e, ent);
}

/* All updates of the batch are back. False: a session keeps the batch. */
static bool batch_is_back(struct back *back)
{
	struct batch *b = back->coming->b;
	struct entry *ent = b->slices[0].txn->scheduler;

	switch (b->session) {
	case BATCH_PREPARE:
		if (!is_prepared(b))
			break;
		b->slices[0].nr = back->coming->nr_prepared;
		session_hold(back->e, ent, b, back->now_ns);
		return false;
	case BATCH_COMMIT:
	case BATCH_ABORT:
		decide_finish(back->e, ent);
		return true;
	case BATCH_LOOK:
		looked(back->e, ent, back->now_ns);
		return true;
	case BATCH_WHOLE:
		break;
	}
	entries_back(back);
	if (b->session == BATCH_WHOLE)
		set_limit(back->e, back->coming);
	return true;
}

/* Takes up to MAX updates of the batch back. True: the batch is back. */
static bool batch_comes_back(struct scheduler *e, struct batch_return *coming,
    size_t max, int64_t now_ns)
{
	struct back back = { e, coming, now_ns };

	if (!updates_back(&back, max))
		return false;
	if (coming->b->session != BATCH_LOOK)
		measure_batch(&e->measure, coming->b, coming->nr_live,
		    coming->nr_later > 0, now_ns);
	if (batch_is_back(&back))
		batch_free(coming->b);
	return true;
}

void on_batch_done_go_on(struct scheduler *e, int64_t now_ns)
{
	struct batch *b = e->returning, *next;

	if (b == NULL)
		return;
	next = b->next;
	if (e->coming.b != b)
		return_begins(&e->coming, b);
	if (batch_comes_back(e, &e->coming, BACK_AT_ONCE, now_ns)) {
		e->coming.b = NULL;
		e->returning = next;
	}
}

void on_batch_done_queues(const struct batch *b, int64_t now_ns)
{
	struct repo_queue *q;
	size_t i;

	for (i = 0; i < b->nr_slices; i++) {
		q = ((struct entry *)b->slices[i].txn->scheduler)->queue;
		if (q != NULL && q->held_by == b)
			fairness_let_go(q, rest_of(b), now_ns);
		if (q == NULL || q->deleting_in != b)
			continue;
		q->deleting_in = NULL;
		fairness_unpark(q);
	}
}

void on_batch_done(struct scheduler *e, struct batch *b, int64_t now_ns)
{
	struct batch_return coming;

	if (b->slices[0].txn->direct == b)
		direct_applied(e, b->slices[0].txn->scheduler);
	e->nr_batches--;
	on_batch_done_queues(b, now_ns);
	if (batch_nr_updates(b) > SMALL_BATCH) {
		b->next = NULL;
		LL_APPEND(e->returning, b);
		return;
	}
	return_begins(&coming, b);
	batch_comes_back(e, &coming, SIZE_MAX, now_ns);
}
