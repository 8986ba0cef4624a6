/* Between the files of the replica. Private to them. */
#ifndef GROUP_REPLICA_INTERNAL_H
#define GROUP_REPLICA_INTERNAL_H

#include "daemon/group/group_replica.h"
#include "daemon/store/group/group_txn.h"
#include "daemon/store/following/follower.h"
#include "daemon/store/group/group_internal.h"

static inline struct group *group_of(struct replica *r)
{
	return (struct group *)r;
}

/* The operations of all nodes. */
extern const struct replica_ops group_replica_ops;

/* ---- admit.c, admit_import.c ---- */

bool group_admit(struct replica *r, struct txn *txn);
bool group_check(struct replica *r, struct txn *txn);
void group_collect(struct replica *r, struct txn *txn);
/* Is TXN, in an opened repository, the import, or is none needed? False: TXN is
 * refused. Blocks on files. */
bool admit_import(const struct sys *sys, struct txn *txn);

/* ---- compare.c, compare_row.c ---- */

void group_compare(struct replica *r, struct pass *p, struct change *c);
void group_permit(struct replica *r, struct pass *p, struct change *c);
void group_compare_around(struct replica *r, struct pass *p, struct change *c);
bool group_fits(struct replica *r, struct slice *s);

/* ---- append.c ---- */

void group_fill(struct replica *r, const struct slice *s,
    struct journal_row *row);
int group_append_rows(struct replica *r, struct pipeline *p,
    struct journal_row *rows, size_t nr, bool flush);
void group_appended(struct replica *r, struct pass *p, const struct slice *s);

#endif
