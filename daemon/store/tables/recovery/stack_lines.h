/*
 * The log lines of rows in a reftable. A log entry has the key (ref, update
 * index), so equal lines of two updates differ.
 *
 * A missing line is added with its old index, because the log shows entries in
 * the order of their indices. But after a power loss git gives the lost indices
 * again. So an entry of git can have the index of the line, or an index between
 * the index of the line and the largest index before the line's batch. Beside
 * such an entry the order would be false. So the place of the line counts as
 * taken.
 *
 * One thread; blocks; nothing logs. Negative errno as in stack_reader.h.
 */
#ifndef STORE_STACK_LINES_H
#define STORE_STACK_LINES_H

#include "daemon/store/recovery/ref_records.h"
#include "daemon/store/tables/stack/stack_reader.h"

enum stack_line_state {
	STACK_LINE_FREE,  /* missing; may be added */
	STACK_LINE_THERE, /* or of an earlier life of the ref */
	STACK_LINE_TAKEN  /* missing; another writer's entry is in the way */
};

struct stack_line {
	const struct ref_record *record;
	enum stack_line_state state;
};

/*
 * Looks for the NR lines in the log of NAME, and sorts them by their indices.
 * IS_LATER: another writer changed the ref afterwards. If this writer made the
 * ref anew, the lines belong to an earlier life of the ref, and must not be
 * added. So such lines count as STACK_LINE_THERE.
 */
int stack_lines_find(struct stack_reader *reader, const char *name,
    bool is_later, struct stack_line *lines, size_t nr);

/* Has the log of NAME the line of RECORD, at the line's index? 1, 0. */
int stack_lines_has(struct stack_reader *reader, const char *name,
    const struct ref_record *record);

/* The entry of RECORD, with texts that belong to its row. */
void stack_lines_entry(const struct ref_record *record,
    struct reftable_log *log);

#endif
