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

static bool choose(struct stack_update *u)
{
	const struct reftable_stack *t = &u->base->tables;
	uint64_t sizes[REFTABLE_TABLES_MAX];
	size_t i, first, end;

	for (i = 0; i < t->nr; i++)
		sizes[i] = reftable_compact_size(&t->tables[i]);
	if (!reftable_compact_plan(sizes, t->nr, &first, &end))
		return false;
	u->is_merge = true;
	u->first_folded = first;
	u->end_folded = end;
	return true;
}

int stack_merge_make(struct stack_update *u)
{
	int r = stack_update_begin(u);

	if (r < 0 || !choose(u))
		return r;
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
	if (r == 0)
		r = stack_update_place(u);
	if (r == 0)
		r = stack_update_unlock(u);
	return r;
}
