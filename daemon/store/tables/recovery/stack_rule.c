/*
 * Happy path: the ref has the last value of the rows, or the record that a row
 * replaced. Anything else was written later.
 */
#include "daemon/store/tables/recovery/stack_rule.h"

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

/* No record is found, or a tombstone: was the ref absent before M, too? Git may
 * have merged the tombstone of the row away, or a merge of refd was lost. So
 * any tombstone with an index up to that of the base proves the absence. But a
 * tombstone is younger if a table before it has the largest index of the base.
 * Then its own index proves nothing, because indices may overlap. */
static bool was_absent(const struct record_member *m,
    const struct stack_found *found)
{
	return found->index == 0 || found->index == m->old_index ||
	    (found->index <= m->base_index && found->earlier < m->base_index);
}

/* Has M replaced the found record? For a symbolic ref the index alone decides,
 * because the row has only the value at its end. */
static bool is_old(const struct record_member *m,
    const struct stack_found *found, uint64_t proved)
{
	if (m->update_index <= proved)
		return false;
	if (!found->exists)
		return !m->had_old && was_absent(m, found);
	return found->index == m->old_index &&
	    (found->target != NULL ||
		(m->had_old && refd_oid_eq(&m->old_oid, &found->oid)));
}

enum stack_verdict stack_rule_apply(const struct record_member *const *rows,
    size_t nr, const struct stack_found *found, uint64_t proved)
{
	size_t i;

	if (stack_rule_is_value(rows[nr - 1], found))
		return STACK_STANDS;
	for (i = 0; i < nr; i++)
		if (is_old(rows[i], found, proved))
			return STACK_REDO;
	return STACK_LATER;
}
