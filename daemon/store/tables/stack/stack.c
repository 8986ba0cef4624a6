/*
 * Happy path: open the directory reftable/ without following a link. All files
 * are reached through this descriptor, so an exchanged path cannot lead refd
 * elsewhere.
 *
 * Failures: a directory reftable/ that is missing, or a link, is refused.
 */
#include "daemon/store/tables/stack/stack.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/hash.h"
#include "daemon/base/time.h"

struct stack_name {
	UT_hash_handle hh;
	char name[];
};

/* Takes over DIRFD on success. */
static int make(const struct sys *sys, int dirfd,
    const enum refd_object_format *format, struct stack **stack)
{
	struct sys_stat st;
	struct stack *s;
	int r = SYS(sys, fstat, dirfd, &st);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->sys = sys;
	atomic_init(&s->refs, 1);
	s->dirfd = dirfd;
	s->dev = st.dev;
	s->ino = st.ino;
	s->format = format;
	mutex_init(&s->mutex, MUTEX_INNER);
	time_cond_init(&s->turn_given);
	*stack = s;
	return 0;
}

int stack_open(const struct sys *sys, int git_fd,
    const enum refd_object_format *format, struct stack **stack)
{
	int fd = SYS(sys, openat, git_fd, STACK_DIRECTORY,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r;

	if (fd < 0)
		return fd;
	r = make(sys, fd, format, stack);
	if (r < 0)
		SYS(sys, close, fd);
	return r;
}

void stack_hold(struct stack *stack)
{
	atomic_fetch_add(&stack->refs, 1);
}

static void free_names(struct stack_name **names)
{
	struct stack_name *n, *next;

	HASH_ITER(hh, *names, n, next) {
		HASH_DEL(*names, n);
		free(n);
	}
}

void stack_put(struct stack *s)
{
	if (s == NULL || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	assert(!s->has_turn);
	stack_snapshot_forget(s);
	free_names(&s->held);
	free_names(&s->retired);
	free_names(&s->due);
	free(s->unmerged);
	SYS(s->sys, close, s->dirfd);
	pthread_cond_destroy(&s->turn_given);
	mutex_destroy(&s->mutex);
	free(s);
}

int stack_is_there(const struct stack *stack, int git_fd)
{
	struct sys_stat st;
	int r = SYS(stack->sys, lstatat, git_fd, STACK_DIRECTORY, &st);

	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return -ESTALE;
	if (r < 0)
		return r;
	return st.dev == stack->dev && st.ino == stack->ino ? 0 : -ESTALE;
}

/* ---- the turn ---- */

bool stack_turn_take(struct stack *stack, unsigned wait_ms)
{
	const struct timespec until = time_after(wait_ms * NS_PER_MS);
	bool is_free;
	int r = 0;

	mutex_lock(&stack->mutex);
	while (stack->has_turn && wait_ms > 0 && r == 0)
		r = mutex_wait_until(&stack->turn_given, &stack->mutex, &until);
	is_free = !stack->has_turn;
	stack->has_turn = true;
	mutex_unlock(&stack->mutex);
	return is_free;
}

void stack_turn_give(struct stack *stack)
{
	struct stack_snapshot *last;

	mutex_lock(&stack->mutex);
	assert(stack->has_turn);
	stack->has_turn = false;
	last = stack->last;
	stack->last = NULL;
	pthread_cond_signal(&stack->turn_given);
	mutex_unlock(&stack->mutex);
	stack_snapshot_put(last);
}

/* ---- update indices ---- */

void stack_spend_index(struct stack *stack, uint64_t index)
{
	mutex_lock(&stack->mutex);
	if (stack->spent_index < index)
		stack->spent_index = index;
	mutex_unlock(&stack->mutex);
}

uint64_t stack_next_index(struct stack *stack,
    const struct stack_snapshot *snap)
{
	uint64_t index;

	mutex_lock(&stack->mutex);
	index = stack->spent_index;
	mutex_unlock(&stack->mutex);
	if (index < snap->max_index)
		index = snap->max_index;
	return index < STACK_INDEX_MAX ? index + 1 : 0;
}

/* ---- names of prepared sessions ---- */

/* Under the mutex. -EEXIST, -ENOMEM. */
static int add_name(struct stack_name **names, const char *name)
{
	const size_t size = strlen(name) + 1;
	struct stack_name *n, *found;

	HASH_FIND_STR(*names, name, found);
	if (found != NULL)
		return -EEXIST;
	n = malloc(sizeof(*n) + size);
	if (n == NULL)
		return -ENOMEM;
	memcpy(n->name, name, size);
	HASH_ADD_STR(*names, name, n);
	if (n->hh.tbl == NULL) {
		free(n);
		return -ENOMEM;
	}
	return 0;
}

int stack_hold_name(struct stack *stack, const char *name)
{
	int r;

	mutex_lock(&stack->mutex);
	r = add_name(&stack->held, name);
	mutex_unlock(&stack->mutex);
	return r;
}

/* Under the mutex. */
static void drop_name(struct stack_name **names, const char *name)
{
	struct stack_name *n;

	HASH_FIND_STR(*names, name, n);
	if (n != NULL)
		HASH_DEL(*names, n);
	free(n);
}

void stack_drop_name(struct stack *stack, const char *name)
{
	mutex_lock(&stack->mutex);
	drop_name(&stack->held, name);
	mutex_unlock(&stack->mutex);
}

bool stack_is_held(struct stack *stack, const char *name)
{
	struct stack_name *n;

	mutex_lock(&stack->mutex);
	HASH_FIND_STR(stack->held, name, n);
	mutex_unlock(&stack->mutex);
	return n != NULL;
}

/* ---- retired tables ---- */

void stack_retire(struct stack *stack, const char *table)
{
	mutex_lock(&stack->mutex);
	add_name(&stack->retired, table);
	mutex_unlock(&stack->mutex);
}

void stack_unretire(struct stack *stack, const char *table)
{
	mutex_lock(&stack->mutex);
	drop_name(&stack->retired, table);
	drop_name(&stack->due, table);
	mutex_unlock(&stack->mutex);
}

bool stack_retired_are_due(struct stack *stack)
{
	struct stack_name *n, *next;
	bool is_due;

	mutex_lock(&stack->mutex);
	HASH_ITER(hh, stack->retired, n, next) {
		HASH_DEL(stack->retired, n);
		add_name(&stack->due, n->name);
		free(n);
	}
	is_due = stack->due != NULL;
	mutex_unlock(&stack->mutex);
	return is_due;
}

bool stack_take_due(struct stack *stack,
    char table[REFTABLE_TABLE_NAME_MAX + 1])
{
	struct stack_name *n;

	mutex_lock(&stack->mutex);
	n = stack->due;
	if (n != NULL) {
		HASH_DEL(stack->due, n);
		snprintf(table, REFTABLE_TABLE_NAME_MAX + 1, "%s", n->name);
	}
	mutex_unlock(&stack->mutex);
	free(n);
	return n != NULL;
}
