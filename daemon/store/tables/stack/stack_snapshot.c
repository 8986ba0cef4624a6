/*
 * Happy path: read the list, compare with the last snapshot, open new tables.
 *
 * Failures: those of reftable_stack.h. A failed snapshot changes nothing.
 */
#include "daemon/store/tables/stack/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stack_snapshot_hold(struct stack_snapshot *snap)
{
	atomic_fetch_add(&snap->refs, 1);
}

void stack_snapshot_put(struct stack_snapshot *snap)
{
	if (snap == NULL || atomic_fetch_sub(&snap->refs, 1) > 1)
		return;
	reftable_stack_close(&snap->tables);
	free(snap->is_durable);
	free(snap);
}

static struct stack_snapshot *last_of(struct stack *stack)
{
	struct stack_snapshot *last;

	mutex_lock(&stack->mutex);
	last = stack->last;
	if (last != NULL)
		stack_snapshot_hold(last);
	mutex_unlock(&stack->mutex);
	return last;
}

/* SNAP becomes the last snapshot until the end of the turn; NULL: no last
 * snapshot is kept. Outside of a turn none is kept either, so an idle stack
 * holds no descriptor of a table. */
static void set_last(struct stack *stack, struct stack_snapshot *snap)
{
	struct stack_snapshot *old;

	mutex_lock(&stack->mutex);
	if (!stack->has_turn)
		snap = NULL;
	if (snap != NULL)
		stack_snapshot_hold(snap);
	old = stack->last;
	stack->last = snap;
	mutex_unlock(&stack->mutex);
	stack_snapshot_put(old);
}

void stack_note_durable(struct stack *stack, char *list,
    const struct sys_stat *st)
{
	char *old;

	mutex_lock(&stack->mutex);
	old = stack->durable_list;
	stack->durable_list = list;
	stack->durable_stat = *st;
	mutex_unlock(&stack->mutex);
	free(old);
}

void stack_snapshot_forget(struct stack *stack)
{
	set_last(stack, NULL);
	stack_note_durable(stack, NULL, &(struct sys_stat){ 0 });
}

bool stack_is_same_file(const struct sys_stat *a, const struct sys_stat *b)
{
	return a->ino == b->ino && a->dev == b->dev &&
	    a->ctime_ns == b->ctime_ns;
}

static bool was_durable(const struct stack_snapshot *last, const char *name)
{
	size_t i;

	for (i = 0; last != NULL && i < last->tables.nr; i++)
		if (strcmp(last->tables.tables[i].name, name) == 0)
			return atomic_load(&last->is_durable[i]);
	return false;
}

/* Copies the marks of LAST. The tables of a list that is known as durable are
 * durable too. */
static int mark_durable(struct stack *stack, const struct stack_snapshot *last,
    struct stack_snapshot *snap)
{
	const char *name;
	size_t i;

	snap->is_durable =
	    calloc(snap->tables.nr + 1, sizeof(*snap->is_durable));
	if (snap->is_durable == NULL)
		return -ENOMEM;
	mutex_lock(&stack->mutex);
	for (i = 0; i < snap->tables.nr; i++) {
		name = snap->tables.tables[i].name;
		atomic_init(&snap->is_durable[i],
		    was_durable(last, name) ||
			(stack->durable_list != NULL &&
			    reftable_stack_lists(stack->durable_list, name)));
	}
	mutex_unlock(&stack->mutex);
	return 0;
}

/* A new snapshot, which uses the open tables of LAST. */
static int take(struct stack *stack, const struct stack_snapshot *last,
    struct stack_snapshot **out, struct reftable_fault *fault)
{
	struct stack_snapshot *snap = calloc(1, sizeof(*snap));
	struct reftable_stack *t;
	int r;

	memset(fault, 0, sizeof(*fault));
	if (snap == NULL)
		return -ENOMEM;
	atomic_init(&snap->refs, 1);
	t = &snap->tables;
	r = reftable_stack_open(stack->sys, stack->dirfd, *stack->format,
	    last != NULL ? &last->tables : NULL, t, fault);
	if (r == 0)
		r = mark_durable(stack, last, snap);
	if (r == 0)
		snap->max_index = reftable_stack_max_index(t->tables, t->nr);
	if (r < 0)
		stack_snapshot_put(snap);
	else
		*out = snap;
	return r;
}

/* 1 if the list is the file of LAST, with the same bytes. */
static int is_unchanged(struct stack *stack, const struct stack_snapshot *last,
    struct reftable_fault *fault)
{
	struct reftable_stack now;
	int r = reftable_stack_read_list(stack->sys, stack->dirfd, &now, fault);

	if (r < 0)
		return r;
	r = now.list_len == last->tables.list_len &&
	    memcmp(now.list, last->tables.list, now.list_len) == 0 &&
	    stack_is_same_file(&now.list_stat, &last->tables.list_stat);
	free(now.list);
	return r;
}

int stack_snapshot(struct stack *stack, struct stack_snapshot **snap,
    struct reftable_fault *fault)
{
	struct stack_snapshot *last = last_of(stack);
	int r = 0;

	*snap = NULL;
	memset(fault, 0, sizeof(*fault));
	if (last != NULL)
		r = is_unchanged(stack, last, fault);
	if (r > 0) {
		*snap = last;
		return 0;
	}
	if (r == 0)
		r = take(stack, last, snap, fault);
	if (r == 0)
		set_last(stack, *snap);
	stack_snapshot_put(last);
	return r;
}

bool stack_snapshot_is_durable(const struct stack_snapshot *snap, size_t i,
    int64_t before_ns)
{
	return atomic_load(&snap->is_durable[i]) ||
	    snap->tables.tables[i].ctime_ns < before_ns;
}

uint64_t stack_snapshot_unsynced(const struct stack_snapshot *snap,
    int64_t before_ns)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < snap->tables.nr; i++)
		if (!stack_snapshot_is_durable(snap, i, before_ns))
			sum += snap->tables.tables[i].file_size;
	return sum;
}
