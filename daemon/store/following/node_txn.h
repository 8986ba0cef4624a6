/*
 * An atomic transaction of this node alone, about refs that another program has
 * written. The journal has it, and the log of the group has not.
 *
 * One thread; nothing blocks.
 */
#ifndef STORE_NODE_TXN_H
#define STORE_NODE_TXN_H

#include "daemon/store/group/group_txn.h"
#include "daemon/store/repos/repo.h"

/* The transaction, and the batch for it. All owned. */
struct node_txn {
	struct group_txn kept; /* TXN borrows it */
	struct txn *txn;
	struct batch *batch;
};

/* Copies UPDATES. IS_BRIEF: a row replaces the new values at once, so their
 * objects are not looked for, except of kept values. 0; -ENOMEM; -EIO: there
 * are no random numbers. */
int node_txn_init(struct node_txn *nt, const struct repo *repo,
    const struct refd_update *updates, size_t nr, bool is_brief);
/* The reference to the repository must have been given back. */
void node_txn_done(struct node_txn *nt);

#endif
