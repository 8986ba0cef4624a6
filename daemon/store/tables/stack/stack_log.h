/*
 * Entries of reflogs in a reftable. Pure functions, for any thread.
 */
#ifndef STORE_STACK_LOG_H
#define STORE_STACK_LOG_H

#include <stdbool.h>

#include "daemon/store/tables/format/reftable_record.h"

/*
 * Sets LOG to the entry of a change from FROM to TO. COMMITTER is "Name <mail>
 * seconds zone", as in a log in a file, and MESSAGE is normalised. The texts
 * are borrowed. COMMITTER is read as by git's split_ident_line(), so a missing
 * or malformed part is empty, or 0.
 */
void stack_log_set(struct reftable_log *log, const struct refd_oid *from,
    const struct refd_oid *to, const char *committer, const char *message);

/* Is A, which may have been read from a table, the same entry as B? A table may
 * have the beginning of a long message only, and ends every message with a line
 * feed, so the beginnings are compared. */
bool stack_log_eq(const struct reftable_log *a, const struct reftable_log *b);

#endif
