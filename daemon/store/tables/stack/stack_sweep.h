/*
 * Tables that no list names: those of a crashed batch, and those whose content
 * is in a later table.
 *
 * Any thread with the stack's turn; blocks. 0 or negative errno.
 */
#ifndef STORE_STACK_SWEEP_H
#define STORE_STACK_SWEEP_H

#include "daemon/store/tables/stack/stack.h"

/*
 * Unlinks every table in reftable/ whose inode is one of INODES, the files of
 * finished batches in refd/stage/, unless the list names the table. The caller
 * has the list lock, and unlinks the names in stage/ afterwards: until then a
 * crash loses nothing. INODES are sorted. The lock stays.
 */
int stack_sweep(struct stack *stack, const uint64_t *inodes, size_t nr,
    struct reftable_fault *fault);

/* Before a sync of the file system: the tables retired so far are due. False:
 * none is. */
bool stack_tidy_begin(struct stack *stack);
/*
 * After a sync of the file system that began after stack_tidy_begin(): removes
 * the due tables, unless the list names them. The new list is durable, so no
 * power loss brings back a list with such a table. Needs no lock: no name comes
 * back. Failures: the table stays; git or a later run removes it.
 *
 * Also decides which tombstones may go. LAST_LSN is at least that of each row
 * with a table in the list at the begin. Rows up to FORGOTTEN_LSN are never
 * replayed again; 0: some may be.
 */
void stack_tidy_end(struct stack *stack, uint64_t last_lsn,
    uint64_t forgotten_lsn);

/*
 * Once after the opening, under the list lock: retires the unlisted tables that
 * git's rule removes, as remove_maybe_stale_table(): those whose largest index
 * is not above the list. Earlier runs left them. For an unreadable table, which
 * a killed repair leaves, the index in the name counts.
 */
void stack_sweep_retire(struct stack *stack, const struct stack_snapshot *snap);

#endif
