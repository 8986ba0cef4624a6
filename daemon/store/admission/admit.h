/*
 * The parts of an admission that other parts of the store need.
 */
#ifndef STORE_ADMIT_H
#define STORE_ADMIT_H

#include "daemon/store/repos/repo.h"
#include "daemon/store/txn.h"

/* admit.c, for the thread that has REPO alone: recovery, or an admission. Does
 * REPO have the object OID? 1, 0 or negative errno. ARG is not used. */
int admit_has_object(void *arg, struct repo *repo, const struct refd_oid *oid);

/* Refuses TXN, which owns WHY from now on. Returns false. */
bool admit_refuse(struct txn *txn, enum refd_status status, char *why);

/* Has U a new value whose objects are looked for? */
bool admit_wants_object(const struct txn_update *u);
/* Decides all updates of TXN with a new value: something that the values name
 * is MISSING; NULL: unreadable. */
void admit_lacks(struct txn *txn, const struct refd_oid *missing);

#endif
