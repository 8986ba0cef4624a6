/*
 * Tables that no list names: a crashed batch left them, or a later table has
 * their content.
 *
 * Any thread may call, and every call may block. stack_sweep() and
 * stack_sweep_retire() need the stack's turn. 0 or negative errno.
 */
#ifndef STORE_STACK_SWEEP_H
#define STORE_STACK_SWEEP_H

#include "daemon/store/tables/stack/stack.h"

/*
 * Unlinks every table in reftable/ whose inode is one of INODES, unless the
 * list names the table. INODES are those of the files of finished batches in
 * refd/stage/, sorted. The caller has the list lock, which stays. After a crash
 * the names in stage/ tell the tables again, so the caller unlinks these names
 * only afterwards.
 */
int stack_sweep(struct stack *stack, const uint64_t *inodes, size_t nr,
    struct reftable_fault *fault);

/* Call before a sync of the file system. The tables that were retired before
 * become due. False if none is due. */
bool stack_tidy_begin(struct stack *stack);
/*
 * After a sync of the file system that began after stack_tidy_begin(): removes
 * the due tables, unless the list names them. The new list is durable, so no
 * power loss brings back a list with a due table. No lock is needed, because no
 * name comes back. If a removal fails, the table stays, and git or a later run
 * removes it.
 *
 * Also decides which tombstones may go. LAST_LSN is at least the LSN of each
 * row with a table in the list at the begin. Rows up to FORGOTTEN_LSN are never
 * replayed again, so their tombstones are no evidence any more; 0 if some may
 * be replayed.
 */
void stack_tidy_end(struct stack *stack, uint64_t last_lsn,
    uint64_t forgotten_lsn);

/*
 * Call once after the opening, under the list lock, because earlier runs may
 * have left tables. Retires the unlisted tables that git's rule
 * (remove_maybe_stale_table()) removes: their largest index is not above the
 * list. A killed repair leaves an unreadable table; of such a table the index
 * in the name counts.
 */
void stack_sweep_retire(struct stack *stack, const struct stack_snapshot *snap);

#endif
