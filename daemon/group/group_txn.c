/* Nothing here can fail, except for memory. */
#include "daemon/group/group_txn.h"

#include <stdlib.h>

#include "daemon/store/objects/row_objects.h"

static void free_kept(struct replica_txn *base)
{
	group_txn_drop_objects((struct group_txn *)base);
	free(base);
}

struct group_txn *group_txn_new(void)
{
	struct group_txn *kept = calloc(1, sizeof(*kept));

	if (kept != NULL)
		kept->base.free = free_kept;
	return kept;
}

static void keep(struct replica_txn *base)
{
	(void)base;
}

void group_txn_lend(struct txn *txn, struct group_txn *kept)
{
	kept->base.free = keep;
	txn->replica = &kept->base;
	txn->is_own = true;
}

void group_txn_drop_objects(struct group_txn *kept)
{
	row_objects_free(kept->objects);
	kept->objects = NULL;
	kept->is_in_row = false;
}

void group_txn_deny_unsupported(struct txn *txn)
{
	size_t i;

	if (txn->refused == REFD_UNSUPPORTED)
		txn->refused = REFD_DENIED;
	if (txn->nr_of[REFD_UNSUPPORTED] == 0)
		return;
	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status == REFD_UNSUPPORTED)
			txn->updates[i].status = REFD_DENIED;
	txn_count(txn);
}
