/*
 * Merging tables, as git does after each transaction, so that a stack stays
 * short.
 */
#ifndef STORE_REFTABLE_COMPACT_H
#define STORE_REFTABLE_COMPACT_H

#include "daemon/store/reftable/reftable_stack.h"
#include "daemon/store/reftable/reftable_writer.h"

/*
 * Plans which tables to merge, so that every table has at least twice the size
 * of the next one. SIZES are those of reftable_compact_size(), the oldest table
 * first. The tables *FIRST to *END - 1 shall be merged; false: none. Pure; any
 * thread.
 */
bool reftable_compact_plan(const uint64_t *sizes, size_t nr, size_t *first,
    size_t *end);
/* The size of a table without the costs of an empty table, as git counts. */
uint64_t reftable_compact_size(const struct reftable_table *table);

/*
 * Writes the tables FIRST to END - 1 of STACK as one table. Deletions are
 * dropped only if FIRST is 0: otherwise they hide records of earlier tables.
 * Results as in reftable_table.h, or of WRITE. -E2BIG: a record does not fit a
 * block of 4096 bytes.
 */
int reftable_compact_merge(const struct reftable_stack *stack, size_t first,
    size_t end, struct reftable_budget *budget, reftable_write_fn *write,
    void *arg, struct reftable_fault *fault);

#endif
