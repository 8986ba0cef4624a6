/*
 * Happy path: no file, or one file of a crashed batch.
 *
 * Failures: a table that cannot be removed stays for the next recovery. Tables
 * that refd did not make always stay, because git removes its own.
 */
#include "daemon/store/tables/stack/stack_sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/array.h"

/* Of a directory, for a scan under the list lock. */
#define ENTRIES_MAX 1000

/* The lock also has the inode of a file in stage/, so the name decides. */
static bool is_table(const char *name)
{
	const size_t len = strlen(name);

	return len > 4 && strcmp(name + len - 4, ".ref") == 0;
}

/* The inode number in the directory entry is only a hint, because a mount may
 * hide the file. So lstat() reads it again. */
static int remove_one(struct stack *stack, const char *name,
    const uint64_t *inodes, size_t nr)
{
	struct sys_stat st;
	int r = SYS(stack->sys, lstatat, stack->dirfd, name, &st);

	if (r == 0 && st.dev == stack->dev && array_has_u64(inodes, nr, st.ino))
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
	mutex_lock(&stack->mutex);
	stack->begun_index = snap->max_index;
	mutex_unlock(&stack->mutex);
	stack_snapshot_put(snap);
	return is_due;
}

/* SYNCED_INDEX waits until its rows are forgotten, because a busy stack would
 * never forget a row if each sync replaced the index. */
void stack_tidy_end(struct stack *stack, uint64_t last_lsn,
    uint64_t forgotten_lsn)
{
	char table[REFTABLE_TABLE_NAME_MAX + 1];
	struct stack_snapshot *snap;
	struct reftable_fault fault;

	mutex_lock(&stack->mutex);
	if (stack->synced_lsn <= forgotten_lsn) {
		stack->forgotten_index = stack->synced_index;
		stack->synced_index = stack->begun_index;
		stack->synced_lsn = last_lsn;
	}
	mutex_unlock(&stack->mutex);
	if (stack_snapshot(stack, &snap, &fault) < 0)
		return;
	while (stack_take_due(stack, table))
		if (!reftable_stack_lists(snap->tables.list, table))
			SYS(stack->sys, unlinkat, stack->dirfd, table);
	stack_snapshot_put(snap);
}

/* The largest index in the name of a table by git or refd, or 0 for another
 * name. */
static uint64_t index_in_name(const char *name)
{
	unsigned long long max;
	int end = 0;

	if (sscanf(name, "0x%*12[0-9a-f]-0x%12llx-%*8[0-9a-f].ref%n", &max,
		&end) != 1 ||
	    end == 0 || name[end] != '\0')
		return 0;
	return max;
}

/* Is the file the new file of a killed repair, or the damaged table that was
 * repaired? The file cannot be a table of git at work: git renames only whole
 * tables, and only under the list lock, which the caller has. */
static bool is_unreadable(const struct stack_snapshot *snap, const char *name,
    int error)
{
	const uint64_t index = index_in_name(name);

	return error == -EBADMSG && index > 0 && index <= snap->max_index;
}

static void retire_stale(struct stack *stack, const struct stack_snapshot *snap,
    const char *name)
{
	struct reftable_fault fault;
	struct reftable_table table;
	int r;

	if (!is_table(name) || reftable_stack_lists(snap->tables.list, name))
		return;
	r = reftable_table_open(stack->sys, stack->dirfd, name, &table, &fault);
	if (r < 0) {
		if (is_unreadable(snap, name, r))
			stack_retire(stack, name);
		return;
	}
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

/* Reads the list alone, because a damaged table does not matter. */
static int read_list(struct stack *stack, struct reftable_stack *list,
    struct reftable_fault *fault)
{
	int r;

	memset(fault, 0, sizeof(*fault));
	memset(list, 0, sizeof(*list));
	r = reftable_stack_read_list(stack->sys, stack->dirfd, list, fault);
	if (r < 0 || list->list_len == 0)
		return r;
	if (memchr(list->list, '\0', list->list_len) == NULL &&
	    list->list[list->list_len - 1] == '\n')
		return 0;
	free(list->list);
	fault->why = "the list is damaged";
	return -EBADMSG;
}

/* Visits all unlisted tables, and counts the tables of other writers in
 * *FOREIGN. Removes the others with REMOVE. */
static int walk(struct stack *stack, const struct reftable_stack *list,
    const uint64_t *inodes, size_t nr, bool remove, size_t *foreign)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r = SYS(stack->sys, dir_open, stack->dirfd, ".", &dir), err = 0;

	if (r < 0)
		return r;
	while ((r = SYS(stack->sys, dir_next, dir, &entry)) > 0) {
		if (!is_table(entry.name) ||
		    reftable_stack_lists(list->list, entry.name))
			continue;
		if (!array_has_u64(inodes, nr, entry.ino))
			++*foreign;
		else if (remove)
			r = remove_one(stack, entry.name, inodes, nr);
		err = err < 0 || r >= 0 ? err : r;
	}
	SYS(stack->sys, dir_close, dir);
	return r < 0 ? r : err;
}

int stack_sweep(struct stack *stack, const uint64_t *inodes, size_t nr,
    struct reftable_fault *fault)
{
	struct reftable_stack list;
	size_t foreign = 0;
	int r = read_list(stack, &list, fault);

	if (r < 0)
		return r;
	/* A power loss may have emptied a list that named these tables, so
	 * nothing is removed beside tables of other writers. */
	if (list.list_len == 0)
		r = walk(stack, &list, inodes, nr, false, &foreign);
	if (r == 0 && foreign > 0) {
		fault->why = "the list is empty, and tables are there";
		r = -EBADMSG;
	}
	if (r == 0)
		r = walk(stack, &list, inodes, nr, true, &foreign);
	free(list.list);
	return r;
}
