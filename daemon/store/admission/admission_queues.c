/*
 * The happy path:
 *	put	a transaction joins the end of its path's queue
 *	begin	the first ready and permitted queue; all queues of its user go
 *		behind the queues of other users
 *	claim	the worker has the repository alone for this turn
 *	take	transactions, in order
 *	end	the queue is ready again, now counted for the user of its first
 *		transaction, or an empty queue is freed
 *
 * Failures: without memory no transaction is queued. A repository has one
 * worker at a time, so if two paths lead to one repository, the second queue
 * waits until the turn of the first queue ends. A worker that does not come
 * back keeps its queue, but transactions in the queue can still be removed.
 */
#include "daemon/store/admission/admission_queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

static struct admission_queue *queue_new(struct admission_queues *a,
    const char *git_dir, const void *place)
{
	struct admission_queue *q = calloc(1, sizeof(*q));

	if (q != NULL)
		q->git_dir = strdup(git_dir);
	if (q == NULL || q->git_dir == NULL) {
		free(q);
		return NULL;
	}
	q->place = place;
	HASH_ADD_KEYPTR(hh, a->by_path, q->git_dir, strlen(q->git_dir), q);
	if (q->hh.tbl == NULL) {
		free(q->git_dir);
		free(q);
		return NULL;
	}
	return q;
}

static void queue_free(struct admission_queues *a, struct admission_queue *q)
{
	HASH_DEL(a->by_path, q);
	free(q->git_dir);
	free(q);
}

static bool is_claimed(const struct admission_queues *a, uint64_t repo)
{
	size_t i;

	for (i = 0; i < ADMISSION_WORKERS; i++)
		if (a->slots[i].repo == repo)
			return true;
	return false;
}

/* Q, which is in no list, becomes ready or waiting, or is freed if empty. */
static void file(struct admission_queues *a, struct admission_queue *q)
{
	if (q->txns == NULL) {
		queue_free(a, q);
		return;
	}
	q->uid = q->txns->peer.uid;
	if (q->waits_for != 0 && !is_claimed(a, q->waits_for))
		q->waits_for = 0;
	if (q->waits_for != 0)
		DL_APPEND(a->waiting, q);
	else
		DL_APPEND(a->ready, q);
}

int admission_queues_put(struct admission_queues *a, struct txn *txn,
    const void *place)
{
	struct admission_queue *q;
	bool is_new;

	HASH_FIND_STR(a->by_path, txn->req.git_dir, q);
	is_new = q == NULL;
	if (is_new)
		q = queue_new(a, txn->req.git_dir, place);
	if (q == NULL)
		return -ENOMEM;
	txn->nth = a->nr_put++;
	txn->queue = q;
	DL_APPEND(q->txns, txn);
	if (is_new)
		file(a, q);
	return 0;
}

void admission_queues_remove(struct admission_queues *a, struct txn *txn)
{
	struct admission_queue *q = txn->queue;

	if (q == NULL)
		return;
	txn->queue = NULL;
	DL_DELETE(q->txns, txn);
	if (q->is_worked_on || (q->txns != NULL && q->txns->peer.uid == q->uid))
		return;
	if (q->waits_for != 0)
		DL_DELETE(a->waiting, q);
	else
		DL_DELETE(a->ready, q);
	file(a, q);
}

static bool may_begin(const struct admission_queues *a,
    const struct admission_queue *q)
{
	const struct admission_queue *other;
	size_t i, of_user = 0, at_place = 0;

	for (i = 0; i < ADMISSION_WORKERS; i++) {
		other = a->slots[i].queue;
		of_user += other != NULL && other->uid == q->uid;
		at_place += other != NULL && other->place == q->place;
	}
	return of_user < ADMISSION_WORKERS - 1 &&
	    at_place < ADMISSION_PER_PLACE;
}

static struct admission_queue *first_that_may(const struct admission_queues *a)
{
	struct admission_queue *q;

	DL_FOREACH(a->ready, q)
		if (may_begin(a, q))
			return q;
	return NULL;
}

bool admission_queues_has_work(const struct admission_queues *a)
{
	return first_that_may(a) != NULL;
}

/* All queues of UID go behind the other queues, in order, so that users take
 * turns. */
static void pass_turn(struct admission_queues *a, uint32_t uid)
{
	struct admission_queue *q, *next, *theirs = NULL;

	DL_FOREACH_SAFE(a->ready, q, next) {
		if (q->uid != uid)
			continue;
		DL_DELETE(a->ready, q);
		DL_APPEND(theirs, q);
	}
	DL_CONCAT(a->ready, theirs);
}

struct admission_queue *admission_queues_begin(struct admission_queues *a,
    size_t slot, int64_t now_ns)
{
	struct admission_queue *q = first_that_may(a);

	if (q == NULL)
		return NULL;
	DL_DELETE(a->ready, q);
	pass_turn(a, q->uid);
	q->is_worked_on = true;
	a->slots[slot] = (struct admission_slot){ .queue = q,
		.path = q->git_dir,
		.since_ns = now_ns };
	return q;
}

struct txn *admission_queues_take(struct admission_queues *a, size_t slot,
    uint64_t before)
{
	struct admission_queue *q = a->slots[slot].queue;
	struct txn *txn = q->txns;

	if (txn == NULL || txn->nth >= before)
		return NULL;
	DL_DELETE(q->txns, txn);
	txn->queue = NULL;
	return txn;
}

void admission_queues_put_back(struct admission_queues *a, size_t slot,
    struct txn *txn)
{
	txn->queue = a->slots[slot].queue;
	DL_PREPEND(txn->queue->txns, txn);
}

bool admission_queues_claim(struct admission_queues *a, size_t slot,
    uint64_t repo)
{
	struct admission_slot *me = &a->slots[slot];

	if (is_claimed(a, repo)) {
		if (me->queue != NULL)
			me->queue->waits_for = repo;
		return false;
	}
	me->repo = repo;
	return true;
}

void admission_queues_end(struct admission_queues *a, size_t slot)
{
	struct admission_slot was = a->slots[slot];
	struct admission_queue *q, *next;

	memset(&a->slots[slot], 0, sizeof(a->slots[slot]));
	if (was.queue != NULL) {
		was.queue->is_worked_on = false;
		file(a, was.queue);
	}
	DL_FOREACH_SAFE(a->waiting, q, next) {
		if (was.repo == 0 || q->waits_for != was.repo)
			continue;
		DL_DELETE(a->waiting, q);
		file(a, q);
	}
}

void admission_queues_begin_other(struct admission_queues *a, size_t slot,
    const char *path, int64_t now_ns)
{
	a->slots[slot] =
	    (struct admission_slot){ .path = path, .since_ns = now_ns };
}
