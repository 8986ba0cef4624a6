/*
 * A transaction of this node's own, which no client asked for.
 *
 * A row must do the same on every node. So the transaction of a row has the
 * same updates as on the leader, with the same old values and the same id.
 * Updates that the leader has rejected, or only verified, keep the leader's
 * outcome. So does the deletion of a ref which is not there.
 *
 * A transaction of this node alone is about refs that another program has
 * written. The journal has the transaction, and the log of the group has not.
 * The transaction is atomic, because a value must not be replaced before it has
 * a second name.
 *
 * One thread; nothing blocks.
 */
#ifndef GROUP_OWN_TXN_H
#define GROUP_OWN_TXN_H

#include "daemon/group/group_txn.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/repos/repo.h"
#include "proto/group_frame.h"

/* The transaction, and its slice of a batch. All owned but FROM. */
struct own_txn {
	const struct group_row *from; /* NULL: of this node alone */
	struct group_txn kept;        /* TXN borrows it */
	struct record record;         /* of a row */
	struct txn *txn;
	struct txn_slice slice;
};

/* Borrows ROW. PATH: the repository on this node. 0; -ENOMEM; -EBADMSG: not a
 * record; -ENOTSUP: the record has a ref of a worktree, or of a reftable. */
int own_txn_of_row(struct own_txn *ot, const struct group_row *row,
    uint64_t lsn, const char *path);
/* Copies UPDATES. IS_BRIEF: a row replaces the new values at once, so nobody
 * looks for the objects of these values, except for the objects of kept values.
 * 0; -ENOMEM; -EIO: there are no random numbers. */
int own_txn_of_node(struct own_txn *ot, const struct repo *repo,
    const struct refd_update *updates, size_t nr, bool is_brief);
/* The reference to the repository must have been given back. */
void own_txn_done(struct own_txn *ot);

#endif
