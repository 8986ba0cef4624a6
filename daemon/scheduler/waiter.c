/*
 * Happy path:
 *	add	at the request
 *	answer	when its transaction or look-up is done
 *
 * Failure modes:
 *	out of memory at add	the request is refused at once
 *	the client ends first	forget: the waiter stays in its list, mute
 */
#include "daemon/scheduler/waiter.h"

#include <stdlib.h>

#include <utlist.h>

#include "daemon/base/hash.h"

struct waiter {
	uint32_t request_id;
	scheduler_answer_fn *fn;
	struct asked_by *by; /* NULL: forgotten */
	atomic_bool *is_forgotten;
	struct entry *ent; /* borrowed; NULL: a question */
	struct waiter *next, *prev;
	struct waiter *next_by, *prev_by;
};

/* A connection that waits for at least one answer. */
struct asked_by {
	void *arg;
	struct waiter *waiters;
	UT_hash_handle hh;
};

static struct asked_by *by_arg(struct waiters *all, void *arg)
{
	struct asked_by *by;

	HASH_FIND(hh, all->head, &arg, sizeof(arg), by);
	if (by != NULL)
		return by;
	by = calloc(1, sizeof(*by));
	if (by == NULL)
		return NULL;
	by->arg = arg;
	HASH_ADD(hh, all->head, arg, sizeof(arg), by);
	if (by->hh.tbl == NULL) {
		free(by);
		return NULL;
	}
	return by;
}

struct waiter *waiter_add(struct waiters *all, scheduler_answer_fn *fn,
    void *arg, uint32_t request_id)
{
	struct waiter *a;

	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return NULL;
	a->by = by_arg(all, arg);
	if (a->by == NULL) {
		free(a);
		return NULL;
	}
	a->request_id = request_id;
	a->fn = fn;
	DL_APPEND2(a->by->waiters, a, prev_by, next_by);
	return a;
}

void waiter_tell_forgotten(struct waiter *a, atomic_bool *is_forgotten)
{
	a->is_forgotten = is_forgotten;
}

void waiter_push(struct waiter **list, struct waiter *a)
{
	DL_APPEND(*list, a);
}

struct waiter *waiter_pop(struct waiter **list)
{
	struct waiter *a = *list;

	if (a != NULL)
		DL_DELETE(*list, a);
	return a;
}

bool waiter_is_mute(const struct waiter *a)
{
	return a->by == NULL;
}

bool waiter_all_are_mute(const struct waiter *list)
{
	const struct waiter *a = list;

	while (a != NULL && a->by == NULL)
		a = a->next;
	return list != NULL && a == NULL;
}

void waiter_set_entry(struct waiter *a, struct entry *ent)
{
	a->ent = ent;
}

void waiter_drop(struct waiters *all, struct waiter *a)
{
	struct asked_by *by = a->by;

	if (by != NULL) {
		DL_DELETE2(by->waiters, a, prev_by, next_by);
		if (by->waiters == NULL) {
			HASH_DEL(all->head, by);
			free(by);
		}
	}
	free(a);
}

void waiter_answer(struct waiters *all, struct waiter *a,
    struct refd_answer *ans)
{
	scheduler_answer_fn *fn = a->fn;
	void *arg = a->by != NULL ? a->by->arg : NULL;
	const bool is_heard = a->by != NULL;

	ans->request_id = a->request_id;
	/* A is freed first, because the callback may forget its client. */
	waiter_drop(all, a);
	if (is_heard)
		fn(arg, ans);
}

void waiter_part(struct waiter *a, struct refd_answer *ans)
{
	ans->request_id = a->request_id;
	a->fn(a->by->arg, ans);
}

void waiter_forget(struct waiters *all, void *arg,
    void (*left)(void *ctx, struct entry *ent), void *ctx)
{
	struct asked_by *by;
	struct waiter *a;

	HASH_FIND(hh, all->head, &arg, sizeof(arg), by);
	if (by == NULL)
		return;
	DL_FOREACH2(by->waiters, a, next_by)
	{
		a->by = NULL;
		if (a->is_forgotten != NULL)
			atomic_store(a->is_forgotten, true);
		if (a->ent != NULL)
			left(ctx, a->ent);
	}
	HASH_DEL(all->head, by);
	free(by);
}
