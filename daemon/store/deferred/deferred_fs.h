/*
 * Records of file systems that failed to sync, or that another mount replaced:
 * they are deferred, and the file system is let go.
 *
 * All functions take the mutex `rows` of deferred.h, but for the last one, and
 * block for as long as the disk does. The caller holds no lock.
 */
#ifndef STORE_DEFERRED_FS_H
#define STORE_DEFERRED_FS_H

#include "daemon/store/deferred/deferred.h"

/* The checkpointer and admission threads: defers the records of all file
 * systems that failed to sync and that nobody uses any more, and closes the
 * descriptors of these file systems. */
void deferred_fs_let_go(struct deferred *d);
/* The admission thread of REPO, before REPO is written: has REPO records that
 * were written on another mount? Then these records are deferred. -EAGAIN:
 * another thread still uses the repository on the other mount. */
int deferred_fs_check(struct deferred *d, struct repo *repo);
/* The admission thread of REPO: the first batch that may have locks in REPO;
 * 0: any batch may. The first call takes the number for a file system, so a
 * call must precede every batch there. Blocks only for repos->mutex. */
uint64_t deferred_fs_first_batch(struct deferred *d, struct repo *repo);

#endif
