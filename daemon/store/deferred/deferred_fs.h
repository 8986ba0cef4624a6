/*
 * Records of file systems that failed to sync, or that were replaced by another
 * mount. The records are deferred, and the file system is let go.
 *
 * All functions except the last take the mutex `rows` of deferred.h before
 * every other lock, so the caller holds no lock. They block for as long as the
 * disk does.
 */
#ifndef STORE_DEFERRED_FS_H
#define STORE_DEFERRED_FS_H

#include "daemon/store/deferred/deferred.h"

/* For the checkpointer and admission workers. Defers the records of all unused
 * file systems that failed to sync, and closes the descriptors of these file
 * systems. */
void deferred_fs_let_go(struct deferred *d);
/* For the admission worker of REPO, before a write to REPO. Defers the records
 * of REPO that were written on a different mount. -EAGAIN: another thread still
 * uses the repository on the other mount. */
int deferred_fs_check(struct deferred *d, struct repo *repo);
/* The admission thread of REPO: returns the first batch that may have locks in
 * REPO; 0: any batch may have locks there. The first call for a file system
 * takes its number, so a call must precede every batch there. Blocks only for
 * repos->mutex. */
uint64_t deferred_fs_first_batch(struct deferred *d, struct repo *repo);

#endif
