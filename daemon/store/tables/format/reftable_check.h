/*
 * Checks a whole table, with every block, the order of all keys, the restart
 * points, the update indices, each level of each index, and the positions in
 * the footer.
 *
 * Any thread may call, every call may block, and nothing logs. Memory for two
 * blocks is needed, because an index is compared with the blocks below. Results
 * as in reftable_table.h; *FAULT is the first fault.
 */
#ifndef STORE_REFTABLE_CHECK_H
#define STORE_REFTABLE_CHECK_H

#include "daemon/store/tables/format/reftable_table.h"

/* The longest abbreviated id in an object section, because the footer has five
 * bits for the length. */
#define REFTABLE_ID_MAX 31
/* Git writes an index for a section of more blocks. */
#define REFTABLE_BLOCKS_WITHOUT_INDEX 3

/* Facts which the blocks of a table tell. */
struct reftable_layout {
	/* The positions for the footer; 0 if absent. */
	uint64_t ref_index, objects, object_index, logs, log_index;
	size_t id_len; /* of the keys of the object section; 0: none */
	/* The section of the last block, or REFTABLE_INDEX if this block is of
	 * an index. 0: there is no block. */
	enum reftable_section last;
	bool lacks_index; /* a section is too long for a table by git */
};

/* Checks all of the table except the positions in the footer, so a table
 * without a footer can be checked too. */
int reftable_check_layout(const struct reftable_table *table,
    struct reftable_budget *budget, struct reftable_layout *layout,
    struct reftable_fault *fault);

int reftable_check(const struct reftable_table *table,
    struct reftable_budget *budget, struct reftable_fault *fault);

#endif
