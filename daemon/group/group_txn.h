/*
 * The data that a group keeps with a transaction. On the leader, the
 * transaction is of a client. Own transactions (own_txn.h) are of a row that
 * this node applies, or of a change of this node alone.
 *
 * Only the owner of the transaction may call these functions.
 */
#ifndef GROUP_TXN_H
#define GROUP_TXN_H

#include "daemon/store/txn.h"

struct record;
struct row_objects;

struct group_txn {
	struct replica_txn base; /* first */

	/* ---- of a client ---- */

	/* The epoch in which the id was looked up (group_admit()). In a later
	 * epoch another node may have done the transaction, so may_commit() and
	 * send() compare. */
	uint64_t epoch;
	/* If the rows contain OBJECTS (owned), no HOLD is needed, because other
	 * nodes get or have all objects of the new values (group_collect()). */
	bool is_in_row;
	struct row_objects *objects;
	/* TXN gives all refs of its repository to the other nodes:
	 * admit_import(). */
	bool imports;

	/* ---- of a row, or of this node alone ---- */

	uint64_t lsn;  /* in the log of the group; 0: of this node alone */
	bool is_final; /* journal_row.final */
	/* The change is of this node alone, and a row replaces its values at
	 * once. So nobody looks for the objects of these values. */
	bool is_brief;
	/* Of the node that wrote the row; NULL: of this node alone. */
	const struct record *record;
	const uint8_t *row_objects; /* row_objects.h; borrowed */
	size_t row_objects_len;
};

/* NULL: TXN changes no ref. */
static inline struct group_txn *group_txn_of(const struct txn *txn)
{
	return (struct group_txn *)txn->replica;
}

/* Does the group have a row of TXN, which this node applies? */
static inline bool group_txn_is_row(const struct txn *txn)
{
	return txn->is_own && txn->replica != NULL &&
	    group_txn_of(txn)->lsn != 0;
}

/* Does no other node get the change? */
static inline bool group_txn_is_of_node(const struct txn *txn)
{
	return txn->is_own && txn->replica != NULL &&
	    group_txn_of(txn)->lsn == 0;
}

/* Of a client. NULL: out of memory. */
struct group_txn *group_txn_new(void);
/* TXN is this node's own, with KEPT, which the caller owns. */
void group_txn_lend(struct txn *txn, struct group_txn *kept);
void group_txn_drop_objects(struct group_txn *kept);
/* Denies everything that refd does not support. Otherwise a client could let
 * git do it, and only this node would have the change. */
void group_txn_deny_unsupported(struct txn *txn);

#endif
