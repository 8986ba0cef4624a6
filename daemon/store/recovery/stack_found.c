#include "daemon/store/recovery/stack_found.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stack_found_read(struct stack_found *found, struct stack_reader *reader,
    const char *name)
{
	const struct reftable_record *rec;
	int r = stack_reader_find(reader, name, &rec);

	*found = (struct stack_found){ .earlier = reader->earlier_index };
	if (r <= 0) {
		found->index = r == 0 ? reader->deleted_index : 0;
		return r;
	}
	found->index = rec->update_index;
	found->exists = true;
	if (rec->ref.kind != REFTABLE_REF_SYMREF) {
		found->oid = rec->ref.oid;
		return 0;
	}
	found->target = strndup(rec->ref.target.at, rec->ref.target.len);
	return found->target != NULL ? 0 : -ENOMEM;
}

void stack_found_done(struct stack_found *found)
{
	free(found->target);
	found->target = NULL;
}
