/*
 * Happy path: the plan of git, the merged table, the lock of the list and of
 * the tables, a list with the merged table in their place.
 *
 * Failures: the merged table goes. The tables stay, and a later merge tries
 * again.
 */
#include "daemon/store/stack/stack_merge.h"

#include <errno.h>

#include "daemon/store/reftable/reftable_compact.h"

static bool plan(const struct stack_snapshot *snap, size_t *first, size_t *end)
{
	const struct reftable_stack *t = &snap->tables;
	uint64_t sizes[REFTABLE_TABLES_MAX];
	size_t i;

	for (i = 0; i < t->nr; i++)
		sizes[i] = reftable_compact_size(&t->tables[i]);
	return reftable_compact_plan(sizes, t->nr, first, end);
}

bool stack_merge_pays(struct stack *stack)
{
	struct stack_snapshot *snap;
	struct reftable_fault fault;
	size_t first, end;
	bool pays;

	if (stack_snapshot(stack, &snap, &fault) < 0)
		return false;
	pays = plan(snap, &first, &end);
	stack_snapshot_put(snap);
	return pays;
}

int stack_merge_make(struct stack_update *u)
{
	size_t first, end;
	int r = stack_update_begin(u);

	if (r < 0 || !plan(u->base, &first, &end))
		return r;
	u->is_merge = true;
	u->first_folded = first;
	u->end_folded = end;
	r = stack_table_make(u, 0, NULL, NULL);
	/* Git's blocks may be larger, and have records which do not fit. */
	if (r == -E2BIG)
		return 0;
	return r < 0 ? r : 1;
}

/* Merged records hide nothing, and are hidden by all later records. */
static bool touches_nothing(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return false;
}

static int flush(struct stack_update *u, struct flusher *flusher,
    int64_t before_ns, bool covers_all)
{
	int r = stack_sync_base(u, before_ns);

	if (r < 0)
		return r;
	stack_sync_begin(u, flusher, covers_all);
	return stack_sync_end(u);
}

int stack_merge_publish(struct stack_update *u, struct flusher *flusher,
    int64_t before_ns, bool covers_all)
{
	enum stack_base result;
	int r = stack_update_lock(u);

	if (r == 0)
		r = stack_base_check(u, touches_nothing, NULL, &result);
	if (r == 0 && result == STACK_BASE_CHANGED)
		r = -EAGAIN;
	if (r == 0)
		r = stack_update_list(u);
	if (r == 0)
		r = flush(u, flusher, before_ns, covers_all);
	if (r < 0)
		return r;
	r = stack_update_place(u);
	/* The disk may have done the rename. */
	if (r < 0 && u->list.progress == PROGRESS_LOCKED)
		edit_to(&u->list, PROGRESS_DEFERRED);
	return r < 0 ? r : stack_update_unlock(u);
}
