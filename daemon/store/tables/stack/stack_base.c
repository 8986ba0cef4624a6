/*
 * Is the base of an update still the present list?
 *
 * Happy path: the list is the same file with the same bytes. Names of tables
 * are random and never come back, so the content is the same too.
 *
 * Otherwise another writer appended or merged tables, or a tool copied the
 * list, and the copy may not be durable. A batch then checks its refs again in
 * a new round, which under the lock nobody can disturb. A merge has checked no
 * ref, so it only needs its tables in the list.
 *
 * Failures: a damaged stack, a directory which was replaced.
 */
#include "daemon/store/tables/stack/stack_update.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Has another program removed our table? Git does so if the table is not
 * listed, and its index is not above the indices of the list. */
static int lost_table(struct stack_update *u)
{
	struct sys_stat st;
	int r = 0;

	if (!u->has_table)
		return 0;
	r = SYS(u->stack->sys, lstatat, u->stack->dirfd, u->table, &st);
	if (r == -ENOENT)
		return 1;
	return r < 0 ?
	    r :
	    st.ino != u->table_stat.ino || st.dev != u->table_stat.dev;
}

/* Are the tables of a merge in NOW, in their order, as git demands? If no table
 * stood before them, the merged table lacks tombstones, so no table may stand
 * before them now. 1: yes, and NOW becomes the base. */
static int find_merged(struct stack_update *u, struct stack_snapshot *now)
{
	const struct reftable_table *was =
	    u->base->tables.tables + u->first_folded;
	const size_t nr = u->end_folded - u->first_folded;
	const struct reftable_stack *is = &now->tables;
	size_t at = 0, i;

	while (at < is->nr && strcmp(is->tables[at].name, was->name) != 0)
		at++;
	if (at + nr > is->nr || (u->first_folded == 0 && at > 0))
		return 0;
	for (i = 0; i < nr; i++)
		if (strcmp(is->tables[at + i].name, was[i].name) != 0)
			return 0;
	stack_snapshot_put(u->base);
	stack_snapshot_hold(now);
	u->base = now;
	u->first_folded = at;
	u->end_folded = at + nr;
	u->is_base_synced = false;
	return 1;
}

static int compare_lists(struct stack_update *u, struct stack_snapshot *now)
{
	const struct reftable_stack *was = &u->base->tables;
	int r;

	if ((strcmp(now->tables.list, was->list) != 0 ||
		!stack_is_same_file(&now->tables.list_stat, &was->list_stat)) &&
	    (!u->is_merge || !find_merged(u, now)))
		return 0;
	r = stack_fold_lock(u);
	return r == 0 ? 1 : r == -EEXIST ? 0 : r;
}

/* Our own table lies beside a list that is empty by now, so the stack looks
 * damaged. The next round drops the table, and reads the stack again. */
static bool is_emptied(struct stack_update *u)
{
	struct reftable_fault ignored;
	struct reftable_stack now;
	bool is_empty;

	if (!u->has_table ||
	    reftable_stack_read_list(u->stack->sys, u->stack->dirfd, &now,
		&ignored) < 0)
		return false;
	is_empty = now.list_len == 0;
	free(now.list);
	return is_empty;
}

int stack_base_check(struct stack_update *u)
{
	struct stack_snapshot *now;
	int r = 0;

	memset(&u->fault, 0, sizeof(u->fault));
	snprintf(u->fault.table, sizeof(u->fault.table), "%s", REFTABLE_LIST);
	if (u->git_fd >= 0)
		r = stack_is_there(u->stack, u->git_fd);
	if (r == 0)
		r = lost_table(u);
	if (r != 0)
		return r < 0 ? r : 0;
	r = stack_snapshot(u->stack, &now, &u->fault);
	if (r < 0)
		return r == -EBADMSG && is_emptied(u) ? 0 : r;
	r = compare_lists(u, now);
	stack_snapshot_put(now);
	return r;
}
