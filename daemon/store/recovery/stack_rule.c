/*
 * Happy path: the record is the last one of the rows, or a later one.
 *
 * The rows are looked at from the newest to the oldest. A row whose list was
 * lost is aborted, and the row before decides.
 */
#include "daemon/store/recovery/stack_rule.h"

#include <string.h>

bool stack_rule_is_value(const struct record_member *m,
    const struct stack_found *found)
{
	if (m->action == RECORD_DELETE || !found->exists)
		return m->action == RECORD_DELETE && !found->exists;
	if (m->target != NULL || found->target != NULL)
		return m->target != NULL && found->target != NULL &&
		    strcmp(m->target, found->target) == 0;
	return refd_oid_eq(&m->new_oid, &found->oid);
}

bool stack_rule_is_there(const struct record_member *m,
    const struct stack_found *found)
{
	return m->update_index > m->base_index &&
	    found->index == m->update_index && stack_rule_is_value(m, found);
}

/* Is the record the one that M replaced? The index decides for a symbolic ref:
 * the row has only the value at its end. Git may have merged an old deletion
 * away. */
static bool is_old(const struct record_member *m,
    const struct stack_found *found)
{
	if (!found->exists)
		return !m->had_old && found->index <= m->base_index;
	if (found->index != m->old_index)
		return false;
	return found->target != NULL ||
	    (m->had_old && refd_oid_eq(&m->old_oid, &found->oid));
}

/* No record is there, and one of the ref was in the stack once: git deleted
 * the ref, and merged the deletion away. */
static bool was_deleted(const struct record_member *m,
    const struct stack_found *found, uint64_t proved)
{
	uint64_t index = m->had_old ? m->old_index : m->update_index;

	return found->index == 0 && m->action == RECORD_WRITE &&
	    proved >= index && proved != 0;
}

enum stack_verdict stack_rule_apply(const struct record_member *const *rows,
    size_t nr, const struct stack_found *found, uint64_t proved, size_t *kept)
{
	const struct record_member *last = rows[nr - 1];
	bool is_value = stack_rule_is_value(last, found);
	size_t i;

	*kept = nr;
	/* An earlier recovery may have written the value with another index. */
	if (is_value &&
	    (found->index == last->update_index ||
		found->index > last->base_index || !found->exists))
		return STACK_STANDS;
	if (was_deleted(last, found, proved))
		return STACK_LATER;
	for (i = 0; i < nr; i++)
		if (is_old(rows[i], found))
			return STACK_REDO;
	for (i = nr; i > 0; i--) {
		*kept = i;
		if (found->index > rows[i - 1]->base_index ||
		    was_deleted(rows[i - 1], found, proved))
			return i < nr &&
				stack_rule_is_value(rows[i - 1], found) ?
			    STACK_STANDS :
			    STACK_LATER;
		if (found->index == rows[i - 1]->update_index &&
		    stack_rule_is_value(rows[i - 1], found))
			return STACK_STANDS;
	}
	*kept = 0;
	return STACK_ABORT;
}
