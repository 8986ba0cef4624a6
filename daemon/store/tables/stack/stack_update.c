/*
 * Happy path: begin, (table), lock, (check), list, (sync), place, unlock.
 *
 * Failures: each step fails alone, because end() removes everything that was
 * not published. A file that cannot be removed is left to the sweep of
 * recovery.
 */
#include "daemon/store/tables/stack/stack_update.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/stack/stack_sweep.h"

static void new_edit(struct stack_update *u, struct token *token)
{
	u->list = (struct edit){ .sys = u->stack->sys,
		.token = token,
		.name = REFTABLE_LIST,
		.dirfd = u->stack->dirfd,
		.format = *u->stack->format,
		.value_nr = u->value_nr + 1,
		.evidence = EVIDENCE_LIVE,
		.progress = PROGRESS_PLANNED };
}

void stack_update_init(struct stack_update *u, struct stack *stack, int git_fd,
    struct token *token, unsigned value_nr)
{
	memset(u, 0, sizeof(*u));
	stack_hold(stack);
	u->stack = stack;
	u->git_fd = git_fd;
	u->value_nr = value_nr;
	u->mode = 0600;
	u->table_fd = u->list_fd = -1;
	new_edit(u, token);
}

bool stack_update_turn(struct stack_update *u, unsigned wait_ms)
{
	u->has_turn = stack_turn_take(u->stack, wait_ms);
	return u->has_turn;
}

static int fail(struct stack_update *u, const char *file, int error)
{
	if (error < 0) {
		memset(&u->fault, 0, sizeof(u->fault));
		snprintf(u->fault.table, sizeof(u->fault.table), "%s", file);
	}
	return error;
}

static void close_list(struct stack_update *u)
{
	if (u->list_fd >= 0)
		SYS(u->stack->sys, close, u->list_fd);
	u->list_fd = -1;
	free(u->new_list);
	u->new_list = NULL;
	u->is_list_flushed = false;
}

int stack_update_begin(struct stack_update *u)
{
	int r = fail(u, "a new table", stack_table_drop(u));

	if (r == 0)
		r = fail(u, "the lock of a table", stack_fold_unlock(u));
	close_list(u);
	if (r == 0)
		r = fail(u, "a new list", edit_discard(&u->list));
	if (r < 0)
		return r;
	stack_snapshot_put(u->base);
	u->base = NULL;
	u->is_base_synced = u->may_fold = u->is_merge = false;
	u->err = 0;
	r = stack_snapshot(u->stack, &u->base, &u->fault);
	if (r == 0)
		u->first_folded = u->end_folded = u->base->tables.nr;
	return r;
}

int stack_update_lock(struct stack_update *u)
{
	if (u->list.progress == PROGRESS_RELEASED)
		new_edit(u, u->list.token);
	/* The directory exists, so its mode does not matter. */
	return fail(u, REFTABLE_LIST ".lock", edit_lock(&u->list, 0777));
}

/* ---- the list ---- */

static int make_list(struct stack_update *u, char **list)
{
	const struct reftable_stack *t = &u->base->tables;
	const char *rest = t->list, *at = t->list;
	size_t i, kept, len;

	for (i = 0; i < u->end_folded; i++) {
		rest = strchr(rest, '\n') + 1;
		if (i < u->first_folded)
			at = rest;
	}
	kept = (size_t)(at - t->list);
	len = kept + strlen(u->table) + 1 + strlen(rest);
	if (t->nr - (u->end_folded - u->first_folded) + 1 >
		REFTABLE_TABLES_MAX ||
	    len > REFTABLE_LIST_MAX)
		return -EFBIG;
	*list = malloc(len + 1);
	if (*list == NULL)
		return -ENOMEM;
	memcpy(*list, t->list, kept);
	snprintf(*list + kept, len + 1 - kept, "%s\n%s", u->table, rest);
	return 0;
}

int stack_update_stage(struct stack_update *u, char *list)
{
	int r;

	assert(edit_is_locked(&u->list) && u->has_table);
	close_list(u);
	u->new_list = list;
	r = edit_discard(&u->list);
	if (r == 0)
		r = edit_stage_bytes(&u->list, list, strlen(list), u->mode);
	if (r >= 0)
		u->list_fd = r;
	return fail(u, "a new list", r < 0 ? r : 0);
}

int stack_update_list(struct stack_update *u)
{
	char *list;
	int r = make_list(u, &list);

	return r < 0 ? fail(u, "a new list", r) : stack_update_stage(u, list);
}

/* ---- publishing ---- */

static void note_durable(struct stack_update *u)
{
	struct sys_stat st;

	/* The rename has changed the ctime, so ST is read now. Without ST the
	 * next update flushes the list again. */
	if (SYS(u->stack->sys, fstat, u->list_fd, &st) < 0)
		memset(&st, 0, sizeof(st));
	stack_note_durable(u->stack, u->new_list, &st);
	u->new_list = NULL;
}

int stack_update_place(struct stack_update *u)
{
	int r;

	assert(u->new_list != NULL && u->err == 0);
	/* A merge makes its table without the turn, so a batch beside may have
	 * taken the table for one of an earlier run (search()). */
	stack_unretire(u->stack, u->table);
	r = edit_place(&u->list);
	if (u->list.is_doubtful)
		edit_to(&u->list, PROGRESS_DEFERRED);
	if (r < 0)
		return fail(u, REFTABLE_LIST, r);
	u->has_table = false; /* it is the stack's now */
	stack_fold_retire(u);
	if (u->is_list_flushed && u->is_base_synced)
		note_durable(u);
	if (u->git_fd >= 0)
		r = stack_is_there(u->stack, u->git_fd);
	return fail(u, STACK_DIRECTORY, r);
}

/* Looks once after the opening for tables that earlier runs left. Under the
 * lock, because git names no table then. */
static void search(struct stack_update *u)
{
	struct stack *stack = u->stack;
	struct stack_snapshot *snap;
	bool is_searched;

	mutex_lock(&stack->mutex);
	is_searched = stack->is_searched;
	stack->is_searched = true;
	mutex_unlock(&stack->mutex);
	if (is_searched || stack_snapshot(stack, &snap, &u->fault) < 0)
		return;
	stack_sweep_retire(stack, snap);
	stack_snapshot_put(snap);
}

int stack_update_unlock(struct stack_update *u)
{
	int r, err;

	if (u->list.progress == PROGRESS_PUBLISHED && !u->list.is_earlier)
		search(u);
	r = fail(u, "the lock of a table", stack_fold_unlock(u));
	if (r == 0)
		r = fail(u, REFTABLE_LIST ".lock", edit_unlock(&u->list));
	err = u->list.progress == PROGRESS_DONE ? stack_table_drop(u) : 0;
	return r < 0 ? r : fail(u, "the table in stage/", err);
}

static void close_all(struct stack_update *u)
{
	close_list(u);
	if (u->table_fd >= 0)
		SYS(u->stack->sys, close, u->table_fd);
	u->table_fd = -1;
}

int stack_update_end(struct stack_update *u)
{
	int r = 0, err;

	if (u->list.progress != PROGRESS_DEFERRED) {
		r = fail(u, "a new table", stack_table_drop(u));
		err = fail(u, "a new list", edit_discard(&u->list));
		r = r < 0 ? r : err;
		err = stack_update_unlock(u);
		r = r < 0 ? r : err;
	}
	close_all(u);
	stack_snapshot_put(u->base);
	u->base = NULL;
	if (u->has_turn)
		stack_turn_give(u->stack);
	u->has_turn = false;
	stack_put(u->stack);
	u->stack = NULL;
	return r;
}
