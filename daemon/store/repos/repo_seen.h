/*
 * <common-dir>/refd/checkpoint: how far its journal had come when the
 * repository was last checkpointed.
 *
 *	journal <32 hex digits>
 *	lsn <20 digits>
 *
 * A journal that ends before that is an older copy: it has forgotten what it
 * answered, and would give its numbers out again. Written in place and synced
 * by the checkpoint's own syncfs; where that is lost with the power, only this
 * is not noticed. The opening of the repository makes the file, before anything
 * is answered. A checkpoint comes later and makes no file: a client that was
 * answered may be removing the repository. The file is the journal's owner's, or root's: what another
 * member of the repository's group puts there counts for nothing. Any thread;
 * blocks; nothing logs.
 */
#ifndef STORE_REPO_SEEN_H
#define STORE_REPO_SEEN_H

#include "daemon/base/sys.h"
#include "daemon/store/journal/journal.h"

/* 0: never, or for another journal, or by somebody else than who has JOURNAL's
 * file, or it can't be read. */
uint64_t repo_seen_read(const struct sys *sys, int refd_fd,
    const struct journal *journal);
/* Makes the file if there is none, or none of the right owner. 0 or negative
 * errno. */
int repo_seen_make(const struct sys *sys, int refd_fd,
    const struct journal *journal);
/* 0 or negative errno; -ENOENT: the file was removed, and stays away. */
int repo_seen_write(const struct sys *sys, int refd_fd,
    const struct journal *journal, uint64_t lsn);

#endif
