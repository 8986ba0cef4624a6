/*
 * A retry of the deferred redo in one repository.
 *
 * Only for the admission worker that is in the repository. Takes the mutex
 * `rows` of deferred.h before every other lock, so the caller holds no lock.
 * Blocks for as long as the disk does.
 */
#ifndef STORE_DEFERRED_RETRY_H
#define STORE_DEFERRED_RETRY_H

#include "daemon/store/deferred/deferred.h"

/* Retries the redo in REPO. Members that are still deferred stay noted, and
 * updates of TXN (may be NULL) that would write a deferred ref are decided.
 * Negative errno: the retry failed, so nothing may be written to REPO. */
int deferred_retry(struct deferred *d, struct repo *repo, struct txn *txn);

#endif
