/*
 * <common-dir>/refd/checkpoint is the note of a journal: since when the journal
 * writes to the directory, and which LSN was durable at the last checkpoint
 * there.
 *
 *	journal <32 hex digits> since <20 digits>
 *	lsn <20 digits>
 *
 * A journal that ends before LSN is an older copy, which has lost answered
 * records and would use their numbers again. LSN covers each record whose
 * update was answered before the checkpoint.
 *
 * Records after SINCE were published in this directory. Nothing is known about
 * earlier records, because the directory may be a later copy from another
 * machine (old_copy.h). SINCE is the last LSN at the first note, durable or
 * not: a record may be in work then, and its refs may have gone to the
 * directory before the note.
 *
 * The opening of the repository makes the file, before any answer, with the
 * first note of the journal. A checkpoint makes no file, because the client may
 * be removing the repository after its answer. The checkpoint writes the file
 * in place, and its syncfs makes the file durable. If a power loss takes the
 * file back, only the two checks are lost.
 *
 * Only a file of the journal's owner or of root counts, because other members
 * of the repository's Unix group may write there, too. Any thread; blocks;
 * nothing logs.
 */
#ifndef STORE_REPO_CHECKPOINT_H
#define STORE_REPO_CHECKPOINT_H

#include "daemon/base/sys.h"
#include "daemon/store/journal/journal.h"

struct repo_checkpoint {
	bool is_there; /* false: no note of this journal */
	uint64_t since, lsn;
};

/* No note: no file, a different journal, a different owner than the journal's
 * file, or an unreadable file. */
struct repo_checkpoint repo_checkpoint_read(const struct sys *sys, int refd_fd,
    const struct journal *journal);
/* Makes the file if it is missing or has a wrong owner, and the first note if
 * there is none. 0 or negative errno. */
int repo_checkpoint_make(const struct sys *sys, int refd_fd,
    struct journal *journal);
/* Notes the durable LSN, since a later one could be lost by a power loss, and
 * the journal would count as an older copy. 0 or negative errno. -ENOENT: the
 * file was removed, and is not made again. */
int repo_checkpoint_write(const struct sys *sys, int refd_fd,
    struct journal *journal);

#endif
