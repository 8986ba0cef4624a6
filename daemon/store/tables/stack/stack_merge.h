/*
 * Merging of tables between batches, so that every table has at least twice the
 * size of the next table, as git does after each transaction.
 *
 *	stack_update_init
 *	stack_merge_make	without a lock, from a snapshot
 *	stack_sync_table	without a lock
 *	stack_merge_publish	large tables by git are flushed, then the list
 *				is locked
 *	stack_update_end
 *
 * A merge belongs to one thread. Every call may block, make() for as long as
 * the tables are large, so make() takes no lock. Errors as in stack_update.h.
 */
#ifndef STORE_STACK_MERGE_H
#define STORE_STACK_MERGE_H

#include "daemon/store/tables/stack/stack_update.h"

/* Does a merge shorten the stack now? A merge takes at most 64 MiB of tables,
 * and no table that made an earlier merge fail. Reads the list. */
bool stack_merge_pays(struct stack *stack);

/* 1 if a table was made. 0 if there is nothing to merge, or if the tables
 * cannot be merged. Then no merge takes these tables as long as the list names
 * the last of them. */
int stack_merge_make(struct stack_update *u);

/*
 * Replaces the merged tables in the list. The update has the stack's turn.
 * BEFORE_NS and COVERS_ALL as in stack_sync_base() and stack_sync_begin(). If a
 * failed rename may have happened, the list's edit is DEFERRED, so the lock and
 * the files stay for recovery. -EAGAIN if another program changed or locked the
 * tables meanwhile, and -EEXIST if the list is locked.
 */
int stack_merge_publish(struct stack_update *u, struct flusher *flusher,
    int64_t before_ns, bool covers_all);

#endif
