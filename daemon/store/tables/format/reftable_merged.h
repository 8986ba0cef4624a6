/*
 * The refs or the logs of several tables as one list. A record of a later table
 * hides the records with the same key of earlier tables.
 *
 * An iteration belongs to one thread, every call may block, and nothing logs.
 * Results as in reftable_table.h.
 */
#ifndef STORE_REFTABLE_MERGED_H
#define STORE_REFTABLE_MERGED_H

#include "daemon/store/tables/format/reftable_stack.h"

struct reftable_merged;

/* Iterates over SECTION of STACK, beginning with the name FROM ("" for all).
 * Entries of a log come the newest first, because their keys have the inverted
 * index. With WITH_DELETIONS, deletions are returned too. The tables of STACK
 * and BUDGET are borrowed. */
int reftable_merged_open(const struct reftable_stack *stack,
    enum reftable_section section, const char *from, bool with_deletions,
    struct reftable_budget *budget, struct reftable_merged **merged,
    struct reftable_fault *fault);
/* 1 with *RECORD, which is valid until the next call; 0 at the end. */
int reftable_merged_next(struct reftable_merged *merged,
    const struct reftable_record **record, struct reftable_fault *fault);
void reftable_merged_free(struct reftable_merged *merged);

/* ---- which tables to merge, as git does, so that a stack stays short ---- */

/*
 * Plans which tables to merge, so that every table has at least twice the size
 * of the next one. SIZES are those of reftable_merge_size(), the oldest table
 * first. The tables *FIRST to *END - 1 shall be merged, or none if the result
 * is false. Pure; any thread.
 */
bool reftable_merge_plan(const uint64_t *sizes, size_t nr, size_t *first,
    size_t *end);
/* The size of a table without the costs of an empty table, as git counts. */
uint64_t reftable_merge_size(const struct reftable_table *table);

#endif
