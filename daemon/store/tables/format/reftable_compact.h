/*
 * Merging tables, as git does after each transaction, so that a stack stays
 * short.
 */
#ifndef STORE_REFTABLE_COMPACT_H
#define STORE_REFTABLE_COMPACT_H

#include "daemon/store/tables/format/reftable_table.h"

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

#endif
