/*
 * Folding: a new table also takes the records of the latest small tables, so
 * that the stack stays short, because readers of git look into every table.
 *
 * Happy path: the plan is that of git, limited to FOLD_MAX bytes. Under the
 * list lock, "<table>.lock" of each folded table, from last to first, keeps git
 * from merging the table. After the rename the tables are not listed any more,
 * but a power loss may bring back the list before. So they are removed after
 * the next checkpoint.
 *
 * Failures: git holds the lock of a table and will soon replace the table, so
 * the new table is made again without folding.
 */
#include "daemon/store/tables/stack/stack_update.h"

#include <errno.h>

#include "daemon/store/tables/format/reftable_merged.h"

/* Bytes of folded tables, which a batch may write and flush under the lock, so
 * they are few. */
#define FOLD_MAX ((uint64_t)256 * 1024)

void stack_fold_choose(struct stack_update *u, uint64_t new_size)
{
	const struct reftable_stack *t = &u->base->tables;
	uint64_t sizes[REFTABLE_TABLES_MAX + 1], sum = 0;
	size_t first, end, i;

	u->first_folded = u->end_folded = t->nr;
	for (i = 0; i < t->nr; i++)
		sizes[i] = reftable_merge_size(&t->tables[i]);
	sizes[t->nr] = new_size;
	if (!u->may_fold ||
	    !reftable_merge_plan(sizes, t->nr + 1, &first, &end) ||
	    end != t->nr + 1)
		return;
	for (i = t->nr; i > first && sum + sizes[i - 1] <= FOLD_MAX; i--)
		sum += sizes[i - 1];
	u->first_folded = i;
}

int stack_fold_lock(struct stack_update *u)
{
	const struct reftable_table *t = u->base->tables.tables;
	size_t i;
	int r = 0;

	for (i = u->end_folded - u->nr_locked; r == 0 && i > u->first_folded;
	    i--) {
		r = token_lock(u->list.token, u->stack->dirfd, t[i - 1].name,
		    0777);
		u->nr_locked += r == 0;
	}
	if (r < 0)
		stack_fold_unlock(u);
	return r;
}

int stack_fold_unlock(struct stack_update *u)
{
	const struct reftable_table *t;
	int r;

	for (; u->nr_locked > 0; u->nr_locked--) {
		t = &u->base->tables.tables[u->end_folded - u->nr_locked];
		r = token_unlock(u->list.token, u->stack->dirfd, t->name);
		if (r < 0)
			return r;
	}
	return 0;
}

void stack_fold_retire(struct stack_update *u)
{
	size_t i;

	for (i = u->first_folded; i < u->end_folded; i++)
		stack_retire(u->stack, u->base->tables.tables[i].name);
}
