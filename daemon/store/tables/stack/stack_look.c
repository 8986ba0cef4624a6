/*
 * Happy path: the stack is open, and its list is read once.
 *
 * Failures: a stack that cannot be read leaves nothing open.
 */
#include "daemon/store/tables/stack/stack_look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void stack_look_end(struct stack_look *look)
{
	stack_reader_done(&look->reader);
	stack_snapshot_put(look->snap);
	stack_put(look->stack);
	look->snap = NULL;
	look->stack = NULL;
}

int stack_look_begin(struct stack_look *look, struct stack_set *set,
    const char *worktree, int git_fd, uint64_t work)
{
	struct reftable_fault fault;
	int r;

	memset(look, 0, sizeof(*look));
	look->budget = REFTABLE_BUDGET(work);
	r = stack_set_get(set, worktree, git_fd, &look->stack);
	if (r < 0)
		look->stack = NULL;
	else
		r = stack_snapshot(look->stack, &look->snap, &fault);
	if (r == 0)
		r = stack_reader_init(&look->reader, look->snap, &look->budget);
	if (r < 0)
		stack_look_end(look);
	return r;
}

int stack_look_value(struct stack_reader *reader, const char *name,
    struct loose_value *value, uint64_t *index)
{
	const struct reftable_text *target;
	const struct reftable_record *rec;
	int r;

	*value = (struct loose_value){ .kind = LOOSE_ABSENT };
	r = stack_reader_find(reader, name, &rec);
	if (r >= 0)
		*index = r > 0 ? rec->update_index : reader->deleted_index;
	if (r <= 0)
		return r;
	value->kind = LOOSE_OID;
	value->oid = rec->ref.oid;
	if (rec->ref.kind != REFTABLE_REF_SYMREF)
		return 0;
	target = &rec->ref.target;
	value->kind = LOOSE_BROKEN;
	if (memchr(target->at, '\0', target->len) != NULL)
		return 0;
	value->kind = LOOSE_SYMREF;
	value->target = strndup(target->at, target->len);
	return value->target != NULL ? 0 : -ENOMEM;
}

int stack_look_found(struct stack_reader *reader, const char *name,
    struct stack_found *found)
{
	struct loose_value value;
	uint64_t index = 0;
	int r = stack_look_value(reader, name, &value, &index);

	/* No row has an empty target, so the ref counts as a symbolic ref by
	 * another writer. */
	if (r == 0 && value.kind == LOOSE_BROKEN) {
		value.target = strdup("");
		r = value.target != NULL ? 0 : -ENOMEM;
	}
	*found = (struct stack_found){ .index = index,
		.earlier = reader->earlier_index,
		.exists = value.kind != LOOSE_ABSENT,
		.oid = value.oid,
		.target = value.target };
	return r;
}

void stack_found_done(struct stack_found *found)
{
	free(found->target);
	found->target = NULL;
}
