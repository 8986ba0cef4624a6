/*
 * Happy path:
 *	join		after admission, in the order of arrival
 *	arrived		all updates are queued at their names
 *	ready, taken	repeated until nothing is undecided
 *	leave		when nothing is undecided
 *
 * Failure modes:
 *	out of memory	only at join
 *	no room in the batch	goes_first: the entry comes before entries
 *			that had their turn
 */
#include "daemon/scheduler/fairness.h"

#include <assert.h>
#include <stdlib.h>

#include <utlist.h>

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

void fairness_leave(struct entry *ent)
{
	struct repo_queue *q = ent->queue;

	if (q == NULL)
		return;
	assert(!ent->is_ready && ent->up == NULL);
	if (ent->is_arriving)
		fairness_arrived(ent);
	ent->queue = NULL;
	if (--q->nr_entries > 0)
		return;
	HASH_DEL(q->fairness->table, q);
	free(q);
}

static bool has_something(const struct entry *ent)
{
	if (ent->state != ENTRY_WAITING || ent->is_arriving || ent->nr_up == 0)
		return false;
	return !ent->goes_whole || ent->nr_up == ent->nr_undecided;
}

static void make_ready(struct fairness *t, struct repo_queue *q,
    struct entry *ent)
{
	if (q->ready == NULL) {
		DL_APPEND(t->ready, q);
		t->nr_ready++;
	}
	if (ent->goes_first) {
		DL_PREPEND(q->ready, ent);
		fairness_again(q);
	} else {
		DL_APPEND(q->ready, ent);
	}
}

void fairness_refresh(struct entry *ent)
{
	struct repo_queue *q = ent->queue;

	if (q == NULL || ent->is_ready == has_something(ent))
		return;
	ent->is_ready = !ent->is_ready;
	if (ent->is_ready) {
		make_ready(q->fairness, q, ent);
		return;
	}
	DL_DELETE(q->ready, ent);
	if (q->ready == NULL) {
		DL_DELETE(q->fairness->ready, q);
		q->fairness->nr_ready--;
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

struct entry *fairness_next_arriving(struct fairness *t)
{
	struct repo_queue *q = t->arriving;

	if (q == NULL)
		return NULL;
	DL_DELETE2(t->arriving, q, prev_arriving, next_arriving);
	DL_APPEND2(t->arriving, q, prev_arriving, next_arriving);
	return q->arriving;
}
