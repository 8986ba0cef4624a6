/*
 * Tables that have lost their footer (reftable_mend.h), under the list lock.
 *
 *	write	the table, with its footer, as a new file with a new name
 *	sync	the file, all listed tables, the new list, the directory
 *	place	a rename of the list puts the new name in place of the old name
 *	remove	the old file, when the rename is durable
 *
 * Recovery and `refd verify --repair` mend by this function alone. Everything
 * is synced before the rename, so a crash or a power loss leaves the old list,
 * or the new list with its table.
 */
#ifndef STORE_STACK_MEND_H
#define STORE_STACK_MEND_H

#include "daemon/store/tables/format/reftable_mend.h"
#include "daemon/store/tables/stack/stack_update.h"

struct stack_mended {
	char was[REFTABLE_TABLE_NAME_MAX + 1];
	char is[REFTABLE_WRITER_NAME];
	bool may_lack_logs; /* reftable_mend.h */
};

/*
 * Mends the first listed table that has lost its footer. The lock of U is held,
 * and nothing is staged. A lock by token stays. Git's lock is gone after a
 * success, because the rename takes it away. GIT_SYNCS as in
 * reftable_mend_open().
 *
 * 1: a table is mended, see *MENDED. 0: no list and no table is damaged in its
 * content. -EBADMSG: a table has a different damage, which u->fault describes.
 * Otherwise errors as in stack_update.h. After a failure the list is the old
 * list, with two exceptions: the sync of the directory behind the rename
 * failed; or the rename may have happened, and the list's edit is DEFERRED.
 */
int stack_mend(struct stack_update *u, bool git_syncs,
    struct stack_mended *mended);

#endif
