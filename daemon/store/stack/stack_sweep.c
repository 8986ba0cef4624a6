/*
 * Happy path: no file, or one file of a crashed batch.
 *
 * Failures: what cannot be removed stays for the next recovery. Tables that
 * refd did not make always stay: git removes its own.
 */
#include "daemon/store/stack/stack_sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of a directory, for a scan under the list lock. */
#define ENTRIES_MAX 1000

static int compare(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static bool is_listed(const struct stack_snapshot *snap, const char *name)
{
	size_t i;

	for (i = 0; i < snap->tables.nr; i++)
		if (strcmp(snap->tables.tables[i].name, name) == 0)
			return true;
	return false;
}

/* The lock also has the inode of a file in stage/. */
static bool is_table(const char *name)
{
	const size_t len = strlen(name);

	return len > 4 && strcmp(name + len - 4, ".ref") == 0;
}

/* The entry's inode number is only a hint: a mount may be in the way. */
static int remove_one(struct stack *stack, const char *name,
    const uint64_t *inodes, size_t nr)
{
	struct sys_stat st;
	int r = SYS(stack->sys, lstatat, stack->dirfd, name, &st);

	if (r == 0 && st.dev == stack->dev &&
	    bsearch(&st.ino, inodes, nr, sizeof(*inodes), compare) != NULL)
		r = SYS(stack->sys, unlinkat, stack->dirfd, name);
	return r == -ENOENT ? 0 : r;
}

/* ---- retired tables ---- */

bool stack_tidy_begin(struct stack *stack)
{
	const bool is_due = stack_retired_are_due(stack);
	struct stack_snapshot *snap;
	struct reftable_fault fault;

	if (stack_snapshot(stack, &snap, &fault) < 0)
		return is_due;
	pthread_mutex_lock(&stack->mutex);
	stack->begun_index = snap->max_index;
	pthread_mutex_unlock(&stack->mutex);
	stack_snapshot_put(snap);
	return is_due;
}

void stack_tidy_end(struct stack *stack)
{
	char table[REFTABLE_TABLE_NAME_MAX + 1];
	struct stack_snapshot *snap;
	struct reftable_fault fault;

	pthread_mutex_lock(&stack->mutex);
	stack->forgotten_index = stack->synced_index;
	stack->synced_index = stack->begun_index;
	pthread_mutex_unlock(&stack->mutex);
	if (stack_snapshot(stack, &snap, &fault) < 0)
		return;
	while (stack_take_due(stack, table))
		if (!is_listed(snap, table))
			SYS(stack->sys, unlinkat, stack->dirfd, table);
	stack_snapshot_put(snap);
}

static void retire_stale(struct stack *stack, const struct stack_snapshot *snap,
    const char *name)
{
	struct reftable_fault fault;
	struct reftable_table table;

	if (!is_table(name) || is_listed(snap, name) ||
	    reftable_table_open(stack->sys, stack->dirfd, name, &table,
		&fault) < 0)
		return;
	if (table.max_index <= snap->max_index)
		stack_retire(stack, name);
	reftable_table_close(&table);
}

void stack_sweep_retire(struct stack *stack, const struct stack_snapshot *snap)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	unsigned nr = 0;

	if (SYS(stack->sys, dir_open, stack->dirfd, ".", &dir) < 0)
		return;
	while (nr++ < ENTRIES_MAX && SYS(stack->sys, dir_next, dir, &entry) > 0)
		retire_stale(stack, snap, entry.name);
	SYS(stack->sys, dir_close, dir);
}

/* ---- a crashed batch ---- */

int stack_sweep(struct stack *stack, const uint64_t *inodes, size_t nr,
    struct reftable_fault *fault)
{
	struct stack_snapshot *snap;
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r, err = 0;

	r = stack_snapshot(stack, &snap, fault);
	if (r < 0)
		return r;
	r = SYS(stack->sys, dir_open, stack->dirfd, ".", &dir);
	if (r < 0) {
		stack_snapshot_put(snap);
		return r;
	}
	while ((r = SYS(stack->sys, dir_next, dir, &entry)) > 0)
		if (is_table(entry.name) &&
		    bsearch(&entry.ino, inodes, nr, sizeof(*inodes), compare) !=
			NULL &&
		    !is_listed(snap, entry.name)) {
			r = remove_one(stack, entry.name, inodes, nr);
			err = err < 0 ? err : r;
		}
	SYS(stack->sys, dir_close, dir);
	stack_snapshot_put(snap);
	return r < 0 ? r : err;
}
