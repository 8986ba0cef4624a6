/*
 * Happy path:
 *	join		after admission, in the order of arrival
 *	arrived		all updates are queued at their names
 *	ready, taken	repeated until nothing is undecided
 *	parked		while another batch has deletions; then ready again
 *	leave		when nothing is undecided
 *
 * Failure modes:
 *	out of memory	only at join
 *	no room in the batch	goes_first: the entry comes before entries
 *			that had their turn
 *
 * Only join allocates memory, so nothing fails later.
 */
#include "daemon/scheduler/fairness.h"

#include <assert.h>
#include <stdlib.h>

#include <utlist.h>

/* A queue with ready entries is in the round, unless a batch holds it or it
 * rests. */
static bool is_in_round(const struct repo_queue *q)
{
	return q->ready != NULL && q->held_by == NULL && q->rests_until_ns == 0;
}

static void enter_round(struct repo_queue *q)
{
	DL_APPEND(q->fairness->ready, q);
	q->fairness->nr_ready++;
}

static void leave_round(struct repo_queue *q)
{
	DL_DELETE(q->fairness->ready, q);
	q->fairness->nr_ready--;
}

/* A queue that rests outlives its entries, because an entry that comes next
 * must wait for the end of the rest, too. */
static void free_unused(struct repo_queue *q)
{
	if (q->nr_entries > 0 || q->rests_until_ns != 0)
		return;
	HASH_DEL(q->fairness->table, q);
	free(q);
}

static struct repo_queue *queue_get(struct fairness *t, uint64_t key)
{
	struct repo_queue *q;

	HASH_FIND(hh, t->table, &key, sizeof(key), q);
	if (q != NULL)
		return q;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return NULL;
	q->fairness = t;
	q->key = key;
	HASH_ADD(hh, t->table, key, sizeof(q->key), q);
	if (q->hh.tbl == NULL) {
		free(q);
		return NULL;
	}
	return q;
}

int fairness_join(struct fairness *t, struct entry *ent, uint64_t key)
{
	struct repo_queue *q = queue_get(t, key);

	assert(ent->queue == NULL);
	if (q == NULL)
		return -1;
	ent->queue = q;
	q->nr_entries++;
	if (q->arriving == NULL)
		DL_APPEND2(t->arriving, q, prev_arriving, next_arriving);
	ent->is_arriving = true;
	DL_APPEND2(q->arriving, ent, prev_arriving, next_arriving);
	return 0;
}

void fairness_arrived(struct entry *ent)
{
	struct repo_queue *q = ent->queue;

	ent->is_arriving = false;
	DL_DELETE2(q->arriving, ent, prev_arriving, next_arriving);
	if (q->arriving == NULL)
		DL_DELETE2(q->fairness->arriving, q, prev_arriving,
		    next_arriving);
	fairness_refresh(ent);
}

static void unpark(struct entry *ent)
{
	ent->is_parked = false;
	DL_DELETE2(ent->queue->parked, ent, prev_parked, next_parked);
}

void fairness_leave(struct entry *ent)
{
	struct repo_queue *q = ent->queue;

	if (q == NULL)
		return;
	assert(!ent->is_ready && ent->nr_up == 0);
	if (ent->is_arriving)
		fairness_arrived(ent);
	if (ent->is_parked)
		unpark(ent);
	ent->queue = NULL;
	q->nr_entries--;
	free_unused(q);
}

static bool has_something(const struct entry *ent)
{
	if (ent->state != ENTRY_WAITING || ent->is_arriving || ent->nr_up == 0)
		return false;
	if (ent->goes_whole)
		return ent->nr_up == ent->nr_undecided && !ent->is_parked;
	return ent->up != NULL || !ent->is_parked;
}

static void make_ready(struct repo_queue *q, struct entry *ent)
{
	const bool was_in_round = is_in_round(q);

	if (ent->goes_first)
		DL_PREPEND(q->ready, ent);
	else
		DL_APPEND(q->ready, ent);
	if (!was_in_round && is_in_round(q))
		enter_round(q);
	if (ent->goes_first && is_in_round(q))
		fairness_again(q);
}

void fairness_refresh(struct entry *ent)
{
	struct repo_queue *q = ent->queue;
	bool was_in_round;

	if (q == NULL || ent->is_ready == has_something(ent))
		return;
	ent->is_ready = !ent->is_ready;
	if (ent->is_ready) {
		make_ready(q, ent);
		return;
	}
	was_in_round = is_in_round(q);
	DL_DELETE(q->ready, ent);
	if (was_in_round && q->ready == NULL)
		leave_round(q);
}

void fairness_park(struct entry *ent)
{
	if (!ent->is_parked)
		DL_APPEND2(ent->queue->parked, ent, prev_parked, next_parked);
	ent->is_parked = true;
	fairness_refresh(ent);
}

void fairness_unpark(struct repo_queue *q)
{
	struct entry *ent;

	while ((ent = q->parked) != NULL) {
		unpark(ent);
		fairness_refresh(ent);
	}
}

void fairness_done(struct fairness *t)
{
	struct repo_queue *q, *next;

	HASH_ITER(hh, t->table, q, next) {
		HASH_DEL(t->table, q);
		free(q);
	}
}

struct repo_queue *fairness_next(struct fairness *t)
{
	struct repo_queue *q = t->ready;

	if (q != NULL) {
		DL_DELETE(t->ready, q);
		DL_APPEND(t->ready, q);
	}
	return q;
}

void fairness_again(struct repo_queue *q)
{
	DL_DELETE(q->fairness->ready, q);
	DL_PREPEND(q->fairness->ready, q);
}

/* ---- queues that write alone ---- */

void fairness_hold(struct repo_queue *q, const struct batch *b)
{
	if (is_in_round(q))
		leave_round(q);
	q->held_by = b;
}

void fairness_rest(struct repo_queue *q, int64_t until_ns, int64_t now_ns)
{
	if (until_ns <= now_ns || until_ns <= q->rests_until_ns)
		return;
	if (is_in_round(q))
		leave_round(q);
	if (q->rests_until_ns == 0)
		DL_APPEND2(q->fairness->resting, q, prev_resting, next_resting);
	q->rests_until_ns = until_ns;
}

void fairness_let_go(struct repo_queue *q, int64_t until_ns, int64_t now_ns)
{
	fairness_rest(q, until_ns, now_ns);
	q->held_by = NULL;
	if (is_in_round(q))
		enter_round(q);
}

int64_t fairness_wake(struct fairness *t, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;
	struct repo_queue *q, *next;

	DL_FOREACH_SAFE2(t->resting, q, next, next_resting)
	{
		if (q->rests_until_ns > now_ns) {
			if (q->rests_until_ns < next_ns)
				next_ns = q->rests_until_ns;
			continue;
		}
		DL_DELETE2(t->resting, q, prev_resting, next_resting);
		q->rests_until_ns = 0;
		if (is_in_round(q))
			enter_round(q);
		free_unused(q);
	}
	return next_ns;
}

struct entry *fairness_next_arriving(struct fairness *t)
{
	struct repo_queue *q = t->arriving;

	if (q == NULL)
		return NULL;
	DL_DELETE2(t->arriving, q, prev_arriving, next_arriving);
	DL_APPEND2(t->arriving, q, prev_arriving, next_arriving);
	return q->arriving;
}
