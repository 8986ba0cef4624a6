/*
 * What recovery does with a ref in a reftable, from three facts: the rows of
 * the log, the record of the ref in the surviving stack, and the proof that
 * tables of refd survived. docs/decisions/017-reftable.md has the reasons.
 *
 * The facts behind the rule:
 *	- A list of tables survives as a whole. With a table, all earlier tables
 *	  are there too, perhaps merged.
 *	- refd makes the list under its lock durable before the new list gets
 *	  its name, and so before any answer.
 *	- After a loss git uses the lost indices again. So an index of ours says
 *	  nothing about a record with another value, and a value of ours at its
 *	  index may have been repeated by git. Only the log line tells.
 *	- A record with an index up to BASE_INDEX was there before our batch,
 *	  unless the list of the batch was lost. So the old record, index and
 *	  value, proves that nobody wrote later.
 *
 * Pure; any thread.
 */
#ifndef STORE_STACK_RULE_H
#define STORE_STACK_RULE_H

#include "daemon/store/journal/record.h"
#include "daemon/store/recovery/stack_found.h"

enum stack_verdict {
	STACK_STANDS, /* the last value of the rows */
	STACK_LATER,  /* another writer changed the ref afterwards */
	STACK_REDO,   /* the ref gets the last value of the rows */
	STACK_ABORT   /* the base of all rows was lost: nobody had an answer */
};

/* Has the ref the value of M, or was it deleted as M says? */
bool stack_rule_is_value(const struct record_member *m,
    const struct stack_found *found);

/* Is the record of M there, by index and value? If the log has the line of M at
 * the same index, the table of M is in the stack, so that all earlier tables
 * are, or were. Without the line git may have repeated the record. */
bool stack_rule_is_there(const struct record_member *m,
    const struct stack_found *found);

/*
 * ROWS: the NR members of one ref that write, delete or confirm a value, oldest
 * first; NR > 0. PROVED: the largest index of a table that is known to be in
 * the stack, as above; 0: none. *KEPT: the rows from this number on are to be
 * aborted; the verdict is that of the other rows.
 */
enum stack_verdict stack_rule_apply(const struct record_member *const *rows,
    size_t nr, const struct stack_found *found, uint64_t proved, size_t *kept);

#endif
