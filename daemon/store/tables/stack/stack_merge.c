/*
 * Happy path: the plan of git, the merged table, the lock of the list and of
 * the tables, a list with the merged table in their place.
 *
 * Failures: the merged table goes, unless the list may name it. The tables
 * stay, and a later merge tries again. If the tables themselves prevent the
 * merge, no later merge takes them, because it would fail again.
 */
#include "daemon/store/tables/stack/stack_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_merged.h"

/* Bytes of merged tables, which suffice for about a million refs. A merge
 * delays the checkpoints of all repositories on the file system, so larger
 * tables stay apart. */
#define MERGE_MAX ((uint64_t)64 * 1024 * 1024)

/* A large table by git is flushed so many times without the lock. */
#define UNLOCKED_MAX 2

/* ---- the plan ---- */

/* The number of tables that no merge takes. 0 if git has merged the table named
 * by stack->unmerged, or if it was replaced meanwhile. */
static size_t nr_unmerged(struct stack *stack, const struct stack_snapshot *s)
{
	size_t i, nr = 0;

	mutex_lock(&stack->mutex);
	for (i = 0; stack->unmerged != NULL && i < s->tables.nr; i++)
		if (strcmp(s->tables.tables[i].name, stack->unmerged) == 0)
			nr = i + 1;
	mutex_unlock(&stack->mutex);
	return nr;
}

static bool plan(struct stack *stack, const struct stack_snapshot *snap,
    size_t *first, size_t *end)
{
	const size_t from = nr_unmerged(stack, snap);
	const struct reftable_stack *t = &snap->tables;
	uint64_t sizes[REFTABLE_TABLES_MAX], sum = 0;
	size_t i;

	for (i = from; i < t->nr; i++)
		sizes[i] = reftable_merge_size(&t->tables[i]);
	if (!reftable_merge_plan(sizes + from, t->nr - from, first, end))
		return false;
	*first += from;
	*end += from;
	for (i = *end; i > *first && sizes[i - 1] <= MERGE_MAX - sum; i--)
		sum += sizes[i - 1];
	*first = i;
	return *end - *first > 1;
}

/* Best effort: without memory the merge is tried again. */
static void set_unmerged(struct stack *stack, const char *table)
{
	char *name = strdup(table), *old;

	mutex_lock(&stack->mutex);
	old = stack->unmerged;
	stack->unmerged = name;
	mutex_unlock(&stack->mutex);
	free(old);
}

bool stack_merge_pays(struct stack *stack)
{
	struct stack_snapshot *snap;
	struct reftable_fault fault;
	size_t first, end;
	bool pays;

	if (stack_snapshot(stack, &snap, &fault) < 0)
		return false;
	pays = plan(stack, snap, &first, &end);
	stack_snapshot_put(snap);
	return pays;
}

int stack_merge_make(struct stack_update *u)
{
	size_t first, end;
	int r = stack_update_begin(u);

	if (r < 0 || !plan(u->stack, u->base, &first, &end))
		return r;
	u->is_merge = true;
	u->first_folded = first;
	u->end_folded = end;
	r = stack_table_make(u, 0, NULL, NULL);
	/* Git's blocks may be larger, so a record may not fit into a block of
	 * refd. */
	if (r != -E2BIG && r != -EFBIG && r != -EBADMSG)
		return r < 0 ? r : 1;
	set_unmerged(u->stack, u->base->tables.tables[end - 1].name);
	return 0;
}

/* ---- under the lock ---- */

static int lock_and_check(struct stack_update *u)
{
	int r = stack_update_lock(u);

	if (r < 0)
		return r;
	r = stack_base_check(u);
	return r == 0 ? -EAGAIN : r < 0 ? r : 0;
}

/* Git waits only 100 ms for the lock, so large tables of git are flushed
 * before. If git adds large tables each time, the last of them are flushed
 * under the lock. */
static int lock(struct stack_update *u, int64_t before_ns, bool covers_all)
{
	unsigned tries;
	int r;

	for (tries = 0;; tries++) {
		r = stack_sync_base(u, before_ns, covers_all);
		/* A changed list does not matter, because the check finds the
		 * present list. */
		if (r < 0 && r != -ESTALE)
			return r;
		r = lock_and_check(u);
		if (r < 0 || tries == UNLOCKED_MAX ||
		    stack_snapshot_unsynced(u->base, before_ns) <= STACK_LARGE)
			return r;
		r = stack_update_unlock(u);
		if (r < 0)
			return r;
	}
}

int stack_merge_publish(struct stack_update *u, struct flusher *flusher,
    int64_t before_ns, bool covers_all)
{
	int r = lock(u, before_ns, covers_all);

	if (r == 0)
		r = stack_update_list(u);
	if (r == 0)
		r = stack_sync_all(u, flusher, before_ns, covers_all);
	if (r < 0)
		return r;
	r = stack_update_place(u);
	return r < 0 ? r : stack_update_unlock(u);
}
