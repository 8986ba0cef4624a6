/*
 * Happy path:
 *	join		after admission, in the order of arrival
 *	arrived		its updates are all at their names
 *	ready, taken	as often as it takes
 *	leave		when nothing is undecided
 *
 * Failure modes:
 *	out of memory	at join alone
 *	a window had no room for it after all	goes_first: it is served
 *			before those that had their turn
 */
#include "daemon/scheduler/turns.h"

#include <assert.h>
#include <stdlib.h>

#include <utlist.h>

static struct queue *queue_get(struct turns *t, uint64_t key)
{
	struct queue *q;

	HASH_FIND(hh, t->table, &key, sizeof(key), q);
	if (q != NULL)
		return q;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return NULL;
	q->turns = t;
	q->key = key;
	HASH_ADD(hh, t->table, key, sizeof(q->key), q);
	if (q->hh.tbl == NULL) {
		free(q);
		return NULL;
	}
	return q;
}

int turns_join(struct turns *t, struct entry *ent, uint64_t key)
{
	struct queue *q = queue_get(t, key);

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

void turns_arrived(struct entry *ent)
{
	struct queue *q = ent->queue;

	ent->is_arriving = false;
	DL_DELETE2(q->arriving, ent, prev_arriving, next_arriving);
	if (q->arriving == NULL)
		DL_DELETE2(q->turns->arriving, q, prev_arriving, next_arriving);
	turns_refresh(ent);
}

void turns_leave(struct entry *ent)
{
	struct queue *q = ent->queue;

	if (q == NULL)
		return;
	assert(!ent->is_ready && ent->up == NULL);
	if (ent->is_arriving)
		turns_arrived(ent);
	ent->queue = NULL;
	if (--q->nr_entries > 0)
		return;
	HASH_DEL(q->turns->table, q);
	free(q);
}

static bool has_something(const struct entry *ent)
{
	if (ent->state != ENTRY_WAITING || ent->is_arriving || ent->nr_up == 0)
		return false;
	return !ent->goes_whole || ent->nr_up == ent->nr_undecided;
}

static void make_ready(struct turns *t, struct queue *q, struct entry *ent)
{
	if (q->ready == NULL) {
		DL_APPEND(t->ready, q);
		t->nr_ready++;
	}
	if (ent->goes_first) {
		DL_PREPEND(q->ready, ent);
		turns_again(q);
	} else {
		DL_APPEND(q->ready, ent);
	}
}

void turns_refresh(struct entry *ent)
{
	struct queue *q = ent->queue;

	if (q == NULL || ent->is_ready == has_something(ent))
		return;
	ent->is_ready = !ent->is_ready;
	if (ent->is_ready) {
		make_ready(q->turns, q, ent);
		return;
	}
	DL_DELETE(q->ready, ent);
	if (q->ready == NULL) {
		DL_DELETE(q->turns->ready, q);
		q->turns->nr_ready--;
	}
}

void turns_done(struct turns *t)
{
	struct queue *q, *next;

	HASH_ITER(hh, t->table, q, next) {
		HASH_DEL(t->table, q);
		free(q);
	}
}

struct queue *turns_next(struct turns *t)
{
	struct queue *q = t->ready;

	if (q != NULL) {
		DL_DELETE(t->ready, q);
		DL_APPEND(t->ready, q);
	}
	return q;
}

void turns_again(struct queue *q)
{
	DL_DELETE(q->turns->ready, q);
	DL_PREPEND(q->turns->ready, q);
}

struct entry *turns_next_arriving(struct turns *t)
{
	struct queue *q = t->arriving;

	if (q == NULL)
		return NULL;
	DL_DELETE2(t->arriving, q, prev_arriving, next_arriving);
	DL_APPEND2(t->arriving, q, prev_arriving, next_arriving);
	return q->arriving;
}
