/*
 * Admission of a gate. Git runs the hook for packed-refs too, with a line for
 * each ref that is packed: no ref changes, and none is locked or read.
 *
 * Failures: none.
 */
#include "daemon/store/admission/admissions_internal.h"

void admit_gate(struct txn *txn)
{
	struct txn_update *u;
	size_t i;

	for (i = 0; i < txn->nr_updates && txn->before != NULL; i++) {
		u = &txn->updates[i];
		if (u->status == REFD_PENDING && txn->before[i].is_known &&
		    u->ask->target == NULL &&
		    refd_oid_eq(&txn->before[i].oid, &u->ask->new_oid))
			txn_decide(u, REFD_ABORTED,
			    "git has not changed the ref");
	}
}
