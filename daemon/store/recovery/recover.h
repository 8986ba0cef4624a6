/*
 * Recovery makes the journal and the refs agree again: before the first answer,
 * and later for deferred records.
 *
 * Blocks; one thread at a time; 0 or negative errno; nothing logs.
 */
#ifndef STORE_RECOVER_H
#define STORE_RECOVER_H

#include "daemon/base/mutex.h"
#include "daemon/store/recovery/replay.h"

struct store_recovery {
	const struct sys *sys;
	struct repos *repos;
	struct commit_log *log;
	/* recover_all: removes locks of other programs that are older; NULL:
	 * none. */
	const struct this_boot *this_boot;
	const struct store_report *report;
	int (*has_object)(void *arg, struct repo *repo,
	    const struct refd_oid *oid);
	uint64_t (*next_token)(void *arg);
	/* recover_all: NR members of this repository are deferred. NR is 0 if
	 * only the search for leftover locks failed. Nobody may write there
	 * before recover_deferred() has returned. ERR: the cause; or 0.
	 * LACKS_REFS: the repository is there, and lacks refs that other
	 * machines have. */
	void (*note)(void *arg, const struct journal_repo *repo, uint64_t nr,
	    int err, bool lacks_refs);
	/* recover_deferred: NAME of WORKTREE (as in record.h) is still
	 * deferred. Nobody may write this ref, because a later redo would
	 * overwrite the new value. May be NULL. */
	void (
	    *still_deferred)(void *arg, const char *worktree, const char *name);
	/* recover_deferred: held while deferred rows are read, because a row
	 * that was read must not vanish when the log is opened again. Another
	 * thread that appends deferred rows holds this mutex until the rows are
	 * durable. */
	struct mutex *rows_mutex;
	/* recover_deferred: update INDEX of row LSN has ended, with any
	 * outcome. May be NULL. */
	void (*ended)(void *arg, uint64_t lsn, uint32_t index);
	/* recover_deferred: leaves the locks of batches from this number on,
	 * since the batches may be at work; 0: of all batches of this start. */
	uint64_t live;
	/* recover_deferred: the batches that ended, sorted, as exceptions to
	 * `live`. */
	const uint64_t *over; /* borrowed */
	size_t nr_over;
	/* recover_all: after -ENOTRECOVERABLE, the reason as a sentence, to be
	 * freed, or NULL. recover_deferred: after a failure, the first update
	 * that would be given up, and the reason, also as a sentence to be
	 * freed, or NULL. Unchanged otherwise. */
	char *why;
	/* recover_deferred: its rows have refs that other machines have, too,
	 * so after a failure REPO lacks them. */
	bool lacks_refs;
	void *arg;
};

/*
 * Recovers everything since the last checkpoint. Afterwards only deferred
 * members need a replay: *DEFERRED members, in JOURNAL_DEFERRED rows. All
 * members of a missing repository, or of a failed disk, are deferred. After an
 * error, serving would break a promise.
 *
 * If other machines have the rows, too (journal_shares_rows()), this machine
 * alone would lack an update that it gives up. So recovery is strict: no update
 * is left, dropped or deferred alone. If recovery would give up an update of a
 * repository, all records of the repository are deferred, its locks stay as
 * evidence, and the note says that the repository lacks refs. A retry starts
 * over. Until it succeeds, nobody may take this machine for a whole copy. A
 * missing repository lacks no refs in this sense, because nobody sees its refs.
 * If a sync fails, or the repositories are an older copy than the journal
 * (old_copy.h), -ENOTRECOVERABLE is returned, and the next run starts over.
 */
int recover_all(struct store_recovery *rec, uint64_t *deferred);

/* Redoes the deferred records of REPO, which has come back, or was repaired, or
 * had foreign locks. This is safe beside a serving daemon, because each ref is
 * locked first, and no lock of a batch from LIVE on is touched. *DEFERRED:
 * members that are still deferred. After an error all members are deferred, so
 * nothing may be written to REPO.
 *
 * -ENOTRECOVERABLE: recovery is strict, and would give an update up. The
 * findings about this update go to rec->why alone. Each retry meets the
 * findings about log lines and objects again. So a strict retry reports them
 * only when it ends well. */
int recover_deferred(struct store_recovery *rec, struct repo *repo,
    uint64_t *deferred);

#endif
