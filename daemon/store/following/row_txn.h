/*
 * A row of the log of the group as a transaction of this node: the same updates
 * with the same old values, under the same id. Updates that the leader has
 * rejected, or only verified, keep the leader's outcome. So does the deletion
 * of a ref which is not there.
 *
 * One thread; nothing blocks.
 */
#ifndef STORE_ROW_TXN_H
#define STORE_ROW_TXN_H

#include "daemon/store/group/group_txn.h"
#include "daemon/store/journal/record.h"
#include "proto/group_frame.h"

/* The transaction, and the batch for it. All owned. */
struct row_txn {
	struct record record;
	struct group_txn kept; /* TXN borrows it */
	struct txn *txn;
	struct batch *batch;
};

/* PATH: the repository on this node. 0; -ENOMEM; -EBADMSG: not a record;
 * -ENOTSUP: the record has a ref of a worktree, or of a reftable. */
int row_txn_init(struct row_txn *rt, const struct group_row *row, uint64_t lsn,
    const char *path);
/* The reference to the repository must have been given back. */
void row_txn_done(struct row_txn *rt);

#endif
