/*
 * Happy path: every update of the batch is decided and recorded; its name
 * rests for as long as its lock was held, so that plain git gets through;
 * transactions without undecided updates are decided.
 *
 * What comes back undecided keeps its place:
 *	later	the store had no time for it. It goes first in the next
 *		batch, and batches are made as small as what the store had
 *		time for, growing again by an eighth: the store prepares in an
 *		order of its own, and the same ones would always come last
 *	alone	again after 10 ms; from then on, as long as its repository has
 *		something to do, in batches of that repository alone
 *	locked	again after 1, 2, 4 ... 50 ms, and at last when the wait for
 *		locks ends; then it gets locked. What is given back with it,
 *		and names no lock itself, only goes along
 *	reopen	admitted again, all that is undecided of it
 * What is decided and not recorded becomes a note (unrecorded.c). Batches of
 * sessions are session.c's, but for one that could not be prepared: that waits
 * as any other.
 *
 * Failure modes: an atomic transaction of which anything failed, or gave up,
 * is aborted as a whole. A cancel and a stop take effect here for what the
 * store gave back, a deadline right after (scheduler_run).
 */
#include <assert.h>

#include "daemon/scheduler/state.h"

#define MS             1000000
#define BACKOFF_MIN_NS (1 * MS)
#define BACKOFF_MAX_NS (50 * MS)
#define ALONE_AFTER_NS (10 * MS)

/* One batch's return. */
struct back {
	struct scheduler *e;
	int64_t now_ns, rest_until_ns;
	size_t nr_live, nr_later;
};

/* How long U, which is locked, may wait for that. */
static int64_t lock_wait_ns(const struct scheduler *e,
    const struct txn_update *u)
{
	const struct refd_request *req = &u->txn->req;

	if (locked_is_packed_refs(u)) {
		if (req->has_packed_refs_timeout)
			return (int64_t)req->packed_refs_timeout_ms * MS;
	} else if (req->has_ref_lock_timeout) {
		return (int64_t)req->ref_lock_timeout_ms * MS;
	}
	return e->cfg.lock_wait_ns;
}

/* Next time after as long as it has waited already, which doubles each time.
 * true: it has waited long enough. */
static bool lock_was_held(struct back *back, struct txn_update *u)
{
	int64_t wait_ns, end_ns;

	if (u->locked_since_ns == 0)
		u->locked_since_ns = back->now_ns;
	wait_ns = back->now_ns - u->locked_since_ns;
	end_ns = u->locked_since_ns + lock_wait_ns(back->e, u);
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
		back->nr_later++;
		break;
	case TXN_AGAIN_ALONE:
		ent->queue->goes_alone = true;
		u->retry_ns = back->now_ns + ALONE_AFTER_NS;
		break;
	case TXN_AGAIN_LOCKED:
		has_given_up = lock_was_held(back, u);
		break;
	case TXN_AGAIN_REOPEN:
		ent->is_misplaced = true;
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

/* Is it known which of PART's updates are locked, and not only given back
 * together with those? */
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

static void slice_back(struct back *back, struct txn_slice *slice)
{
	struct entry *ent = slice->txn->scheduler;
	bool all_recorded = true;
	bool named = ent->goes_whole && names_locks(slice);
	size_t i;

	on_batch_done_lsn(slice);
	for (i = 0; i < slice->nr; i++) {
		struct txn_update *u = slice->updates[i];
		bool is_unrecorded = !u->in_batch;

		back->nr_live += !is_unrecorded;
		if (u->status != REFD_PENDING && !u->recorded)
			all_recorded = false;
		if (is_unrecorded) {
			unrecorded_add(u);
		} else if (u->status != REFD_PENDING) {
			ref_queue_back(&back->e->ref_queues, u,
			    back->rest_until_ns, back->now_ns);
			decide_count(u);
		} else {
			undecided_back(back, u,
			    named && u->again == TXN_AGAIN_LOCKED &&
				u->locked_path == NULL);
		}
	}
	unrecorded_rode(ent, all_recorded);
}

/* What is to become of the rest of ENT. */
static void judge(struct back *back, struct entry *ent)
{
	struct scheduler *e = back->e;
	int64_t now_ns = back->now_ns;

	if (decide_siblings(e, ent, now_ns))
		return;
	if (e->is_hurrying)
		entry_give_up(ent, REFD_ABORTED, "the daemon is stopping");
	if (ent->end_status != REFD_OK)
		decide_rest(e, ent, ent->end_status, ent->end_text, now_ns);
	else if (ent->has_given_up)
		decide_late(e, ent, now_ns);
}

static void entry_back(struct back *back, struct entry *ent)
{
	struct scheduler *e = back->e;

	if (ent->state == ENTRY_DECIDED) {
		if (!unrecorded_keep(&e->unrecorded, ent))
			decide_forget(e, ent);
		return;
	}
	entry_move(ent, ENTRY_WAITING);
	judge(back, ent);
	if (ent->nr_undecided == 0) {
		decide_finish(e, ent);
	} else if (ent->is_misplaced) {
		ent->is_misplaced = false;
		on_admitted_again(e, ent, back->now_ns);
	} else {
		on_admitted_time(e, ent, true);
		fairness_refresh(ent);
	}
}

static void set_limit(struct back *back)
{
	struct scheduler *e = back->e;
	size_t nr = back->nr_live - back->nr_later;

	if (back->nr_later > 0)
		e->batch_refs = nr > 0 ? nr : 1;
	else if (nr >= e->batch_refs)
		e->batch_refs += e->batch_refs / 8 + 1;
	if (e->batch_refs > e->cfg.batch_refs)
		e->batch_refs = e->cfg.batch_refs;
}

/* How many of B's updates it was to try, and whether some were given back for
 * want of time. */
static void measure(struct scheduler *e, struct batch *b, int64_t now_ns)
{
	const struct txn_update *u;
	bool gave_back = false;
	size_t i, k, nr_live = 0;

	for (i = 0; i < b->nr_slices; i++) {
		for (k = 0; k < b->slices[i].nr; k++) {
			u = b->slices[i].updates[k];
			nr_live += u->in_batch;
			gave_back = gave_back ||
			    (u->status == REFD_PENDING &&
				u->again == TXN_AGAIN_LATER);
		}
	}
	measure_batch(&e->measure, b, nr_live, gave_back, now_ns);
}

static void take_back(struct scheduler *e, struct batch *b, int64_t now_ns)
{
	struct back back = { .e = e, .now_ns = now_ns };
	struct entry *ent;
	size_t i;

	if (b->locked_ns != 0)
		back.rest_until_ns =
		    b->unlocked_ns + (b->unlocked_ns - b->locked_ns);
	for (i = 0; i < b->nr_slices; i++)
		slice_back(&back, &b->slices[i]);
	for (i = 0; i < b->nr_slices; i++) {
		ent = b->slices[i].txn->scheduler;
		if (ent->goes_first)
			continue;
		b->slices[i].txn = NULL;
		entry_back(&back, ent);
	}
	/* Each goes ahead of the others: the last one first. */
	while (i-- > 0)
		if (b->slices[i].txn != NULL)
			entry_back(&back, b->slices[i].txn->scheduler);
	if (b->session == BATCH_WHOLE)
		set_limit(&back);
	batch_free(b);
}

void on_batch_done_deletions(const struct batch *b)
{
	struct repo_queue *q;
	size_t i;

	for (i = 0; i < b->nr_slices; i++) {
		q = ((struct entry *)b->slices[i].txn->scheduler)->queue;
		if (q == NULL || q->deleting_in != b)
			continue;
		q->deleting = NULL;
		q->deleting_in = NULL;
	}
}

void on_batch_done(struct scheduler *e, struct batch *b, int64_t now_ns)
{
	if (b->slices[0].txn->direct == b)
		direct_applied(e, b->slices[0].txn->scheduler);
	e->nr_batches--;
	measure(e, b, now_ns);
	on_batch_done_deletions(b);
	switch (b->session) {
	case BATCH_PREPARE:
		if (b->slices[0].txn->prepared == NULL)
			break;
		session_prepared(e, b, now_ns);
		return;
	case BATCH_COMMIT:
	case BATCH_ABORT:
		session_ended(e, b);
		return;
	case BATCH_WHOLE:
		break;
	}
	take_back(e, b, now_ns);
}
