/*
 * Happy path: the stack is open, and one stat shows that the path still leads
 * to the stack.
 *
 * Failures: a stack that cannot be opened is not kept, so the next caller tries
 * again.
 */
#include "daemon/store/tables/stack/stack_set.h"
#include "daemon/base/mutex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kept_stack {
	struct stack *stack; /* a reference */
	struct kept_stack *next;
	char worktree[];
};

struct stack_set {
	const struct sys *sys;
	const enum refd_object_format *format;
	struct mutex mutex;
	struct kept_stack *entries;
	size_t nr;
	/* The largest index of a row of the log in the closed stacks. */
	uint64_t spent_index;
};

struct stack_set *stack_set_new(const struct sys *sys,
    const enum refd_object_format *format)
{
	struct stack_set *set = calloc(1, sizeof(*set));

	if (set == NULL)
		return NULL;
	set->sys = sys;
	set->format = format;
	mutex_init(&set->mutex, MUTEX_STACKS);
	return set;
}

void stack_set_free(struct stack_set *set)
{
	struct kept_stack *e;

	if (set == NULL)
		return;
	while ((e = set->entries) != NULL) {
		set->entries = e->next;
		stack_put(e->stack);
		free(e);
	}
	mutex_destroy(&set->mutex);
	free(set);
}

/* Under MUTEX. */
static struct kept_stack *find(const struct stack_set *set,
    const char *worktree)
{
	struct kept_stack *e = set->entries;

	while (e != NULL && strcmp(e->worktree, worktree) != 0)
		e = e->next;
	return e;
}

/* With a reference, or NULL. */
static struct stack *known(struct stack_set *set, const char *worktree)
{
	struct stack *stack = NULL;
	struct kept_stack *e;

	mutex_lock(&set->mutex);
	e = find(set, worktree);
	if (e != NULL) {
		stack = e->stack;
		stack_hold(stack);
	}
	mutex_unlock(&set->mutex);
	return stack;
}

static uint64_t spent_index(struct stack *stack)
{
	uint64_t index;

	mutex_lock(&stack->mutex);
	index = stack->spent_index;
	mutex_unlock(&stack->mutex);
	return index;
}

/* Makes room for one entry, and takes out a stack which nobody uses. The stack
 * may be opened again, but no index may be used twice. So the set keeps the
 * largest spent index of the stack. Under MUTEX. */
static struct kept_stack *take_unused(struct stack_set *set)
{
	struct kept_stack **at = &set->entries, *e;

	if (set->nr < STACK_SET_KEPT)
		return NULL;
	while ((e = *at) != NULL && atomic_load(&e->stack->refs) > 1)
		at = &e->next;
	if (e != NULL) {
		*at = e->next;
		set->nr--;
		if (set->spent_index < spent_index(e->stack))
			set->spent_index = spent_index(e->stack);
	}
	return e;
}

/* Puts the newly opened *STACK into the set, in place of OLD. If a different
 * thread was faster, *STACK becomes the stack of the faster thread, so that
 * both threads share one turn. */
static int enlist(struct stack_set *set, const char *worktree,
    const struct stack *old, struct stack **stack)
{
	const size_t size = strlen(worktree) + 1;
	struct kept_stack *e, *made = malloc(sizeof(*made) + size);
	struct kept_stack *unused = NULL;
	struct stack *drop = NULL;

	if (made == NULL)
		return -ENOMEM;
	memcpy(made->worktree, worktree, size);
	mutex_lock(&set->mutex);
	e = find(set, worktree);
	if (e == NULL) {
		unused = take_unused(set);
		stack_spend_index(*stack, set->spent_index);
		set->nr++;
		made->next = set->entries;
		set->entries = made;
		made->stack = *stack;
		made = NULL;
	} else if (e->stack == old) {
		drop = e->stack;
		/* The rows of the log still have their indices, so no new table
		 * may get them. */
		stack_spend_index(*stack, spent_index(drop));
		e->stack = *stack;
	} else {
		drop = *stack;
		*stack = e->stack;
	}
	stack_hold(*stack);
	mutex_unlock(&set->mutex);
	free(made);
	stack_put(drop);
	stack_put(unused != NULL ? unused->stack : NULL);
	free(unused);
	return 0;
}

int stack_set_get(struct stack_set *set, const char *worktree, int git_fd,
    struct stack **stack)
{
	struct stack *old = known(set, worktree), *opened;
	int r = old != NULL ? stack_is_there(old, git_fd) : -ESTALE;

	if (r == 0) {
		*stack = old;
		return 0;
	}
	if (r == -ESTALE)
		r = stack_open(set->sys, git_fd, set->format, &opened);
	if (r == 0) {
		*stack = opened;
		r = enlist(set, worktree, old, stack);
		if (r < 0)
			stack_put(opened);
	}
	stack_put(old);
	return r;
}

/* The stacks of the set, each with a reference. NULL if memory is short. */
static struct stack **hold_all(struct stack_set *set, size_t *nr)
{
	struct stack **all;
	struct kept_stack *e;

	*nr = 0;
	mutex_lock(&set->mutex);
	all = calloc(set->nr + 1, sizeof(struct stack *));
	for (e = set->entries; all != NULL && e != NULL; e = e->next) {
		stack_hold(e->stack);
		all[(*nr)++] = e->stack;
	}
	mutex_unlock(&set->mutex);
	return all;
}

int stack_set_each(struct stack_set *set,
    int (*fn)(void *arg, struct stack *stack), void *arg)
{
	size_t nr, i;
	struct stack **all = hold_all(set, &nr);
	int r = all != NULL ? 0 : -ENOMEM;

	for (i = 0; i < nr; i++) {
		if (r == 0)
			r = fn(arg, all[i]);
		stack_put(all[i]);
	}
	free(all);
	return r;
}
