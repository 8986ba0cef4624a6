/*
 * A whole table: every block, the order of all keys, the restart points, the
 * update indices, each level of each index, and the positions in the footer.
 *
 * Any thread; blocks; nothing logs. Memory for two blocks. Results as in
 * reftable_table.h; *FAULT is the first fault.
 */
#ifndef STORE_REFTABLE_CHECK_H
#define STORE_REFTABLE_CHECK_H

#include "daemon/store/reftable/reftable_table.h"

int reftable_check(const struct reftable_table *table,
    struct reftable_fault *fault);

#endif
