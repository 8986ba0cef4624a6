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
 * One thread; every call may block, make() for as long as the tables are large.
 * Errors as in stack_update.h.
 */
#ifndef STORE_STACK_MERGE_H
#define STORE_STACK_MERGE_H

#include "daemon/store/tables/stack/stack_update.h"

/* Does a merge shorten the stack now? Reads the list. A merge takes at most 64
 * MiB of tables, and no table that made an earlier merge fail. */
bool stack_merge_pays(struct stack *stack);

/* 1: a table was made. 0: there is nothing to merge, or the tables cannot be
 * merged: no merge takes them until the list lacks the last one. */
int stack_merge_make(struct stack_update *u);

/*
 * Replaces the merged tables in the list. The update has the stack's turn.
 * BEFORE_NS and COVERS_ALL as in stack_sync_base() and stack_sync_begin().
 * If the rename fails, the list's edit is DEFERRED: the lock and the files stay
 * for recovery. -EAGAIN: another program changed or locked the tables
 * meanwhile. -EEXIST: the list is locked.
 */
int stack_merge_publish(struct stack_update *u, struct flusher *flusher,
    int64_t before_ns, bool covers_all);

#endif
