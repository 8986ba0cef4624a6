/*
 * Tables that no list names: those of a crashed batch, and those whose content
 * is in a later table.
 *
 * Any thread with the stack's turn; blocks. 0 or negative errno.
 */
#ifndef STORE_STACK_SWEEP_H
#define STORE_STACK_SWEEP_H

#include "daemon/store/stack/stack.h"

/*
 * Unlinks every table in reftable/ whose inode is one of INODES, the files of
 * finished batches in refd/stage/, unless the list names the table. The caller
 * has the list lock, and unlinks the names in stage/ afterwards: until then a
 * crash loses nothing. INODES are sorted. The lock stays.
 */
int stack_sweep(struct stack *stack, const uint64_t *inodes, size_t nr,
    struct reftable_fault *fault);

#endif
