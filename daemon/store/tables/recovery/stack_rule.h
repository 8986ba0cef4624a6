/*
 * Tells recovery how to treat a ref in a reftable, from three facts: the rows
 * of the log, the record of the ref in the surviving stack, and the proof that
 * tables of refd survived. docs/reftables.md has the reasons.
 *
 * The facts behind the rule:
 * - A list of tables survives as a whole. With a table, all earlier tables
 *   are there too, perhaps merged.
 * - A list by another writer, on which rows are based, is durable before
 *   the journal has the rows (stack_sync_base()). Lists by refd can be
 *   lost, but then their rows are redone. So a value that the rows
 *   replaced was there, and if the value is gone, somebody wrote later.
 * - The same index can occur twice. After a loss git uses the lost
 *   indices again, and a writer that took its index from an older list
 *   uses indices of other tables. So an index identifies a record of a ref
 *   only together with the value, and the place in the list says what is
 *   later.
 * - If another writer repeats index and value of the replaced record
 *   after a loss, nothing tells the two apart: the row is redone.
 *
 * Pure; any thread.
 */
#ifndef STORE_STACK_RULE_H
#define STORE_STACK_RULE_H

#include "daemon/store/journal/record.h"
#include "daemon/store/tables/stack/stack_look.h"

enum stack_verdict {
	STACK_STANDS, /* the last value of the rows */
	STACK_LATER,  /* another writer changed the ref afterwards */
	STACK_REDO    /* the ref gets the last value of the rows */
};

/* Has the ref the value of M, or was it deleted as M says? */
bool stack_rule_is_value(const struct record_member *m,
    const struct stack_found *found);

/* Is the record of M there, by index and value? The record alone proves
 * nothing, because git may have given the same index and value again. But if
 * the log has the line of M at the same index, the table of M is in the stack.
 * So all earlier tables are there, too, or were there before a merge. */
bool stack_rule_is_there(const struct record_member *m,
    const struct stack_found *found);

/*
 * ROWS are the NR members of one ref that write, delete or confirm a value,
 * oldest first; NR > 0. PROVED is the largest index of a row whose table is
 * known to be in the stack, by stack_rule_is_there() and the log line, or 0 if
 * there is no such row.
 */
enum stack_verdict stack_rule_apply(const struct record_member *const *rows,
    size_t nr, const struct stack_found *found, uint64_t proved);

#endif
