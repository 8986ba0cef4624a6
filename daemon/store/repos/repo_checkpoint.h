/*
 * <common-dir>/refd/checkpoint has the last LSN of the journal at the last
 * checkpoint of the repository.
 *
 *	journal <32 hex digits>
 *	lsn <20 digits>
 *
 * A journal that ends before this LSN is an older copy, which has lost answered
 * records and would use their numbers again.
 *
 * The opening of the repository makes the file, before any answer. A checkpoint
 * makes no file, because the client may be removing the repository after its
 * answer. The checkpoint writes the file in place, and its syncfs makes the
 * file durable. If a power loss takes the file back, only this check is lost.
 *
 * Only a file of the journal's owner or of root counts, because other members
 * of the repository's group may write there, too. Any thread; blocks; nothing
 * logs.
 */
#ifndef STORE_REPO_CHECKPOINT_H
#define STORE_REPO_CHECKPOINT_H

#include "daemon/base/sys.h"
#include "daemon/store/journal/journal.h"

/* Returns the LSN. 0: no file, a different journal, a different owner than the
 * journal's file, or an unreadable file. */
uint64_t repo_checkpoint_read(const struct sys *sys, int refd_fd,
    const struct journal *journal);
/* Makes the file if it is missing or has a wrong owner, and returns 0 or a
 * negative errno. */
int repo_checkpoint_make(const struct sys *sys, int refd_fd,
    const struct journal *journal);
/* 0 or negative errno. -ENOENT: the file was removed, and is not made again. */
int repo_checkpoint_write(const struct sys *sys, int refd_fd,
    const struct journal *journal, uint64_t lsn);

#endif
