/*
 * Recovery: the journal and the refs made to agree again, before anything is
 * answered, and later for what had to be deferred.
 *
 * Blocks; one thread at a time; 0 or negative errno; nothing logs.
 */
#ifndef STORE_RECOVER_H
#define STORE_RECOVER_H

#include <pthread.h>

#include "daemon/store/recovery/replay.h"

struct store_recovery {
	const struct sys *sys;
	struct repos *repos;
	struct commit_log *log;
	const char *boot_id;
	const struct store_report *report;
	int (*has_object)(void *arg, struct repo *repo,
	    const struct refd_oid *oid);
	uint64_t (*next_token)(void *arg);
	/* recover_all: NR members of this repository are deferred. 0: none, but
	 * it could not be searched for locks of ours. Nobody may write there
	 * before recover_deferred() has. ERR: what failed; or 0. */
	void (*note)(void *arg, const struct journal_repo *repo, uint64_t nr,
	    int err);
	/* recover_deferred: NAME of WORKTREE (record.h's) is still deferred, so
	 * nobody may write it: its record would be redone over what was
	 * written. May be NULL. */
	void (
	    *still_deferred)(void *arg, const char *worktree, const char *name);
	/* recover_deferred: held while deferred rows are read. Another thread
	 * that appends deferred rows holds the mutex until the rows are
	 * durable: a row that was read stays, also when the log is opened
	 * again. */
	pthread_mutex_t *rows_mutex;
	/* recover_deferred: update INDEX of row LSN has ended, one way or the
	 * other. May be NULL. */
	void (*ended)(void *arg, uint64_t lsn, uint32_t index);
	/* recover_deferred: locks of windows from this one on are let stand, as
	 * their windows may be at work; 0: of all windows of this start. */
	uint64_t live;
	/* recover_deferred: but for these sorted ones, which are over. */
	const uint64_t *over; /* borrowed */
	size_t nr_over;
	void *arg;
};

/*
 * Everything since the last checkpoint. Afterwards nothing is left to replay
 * but what is deferred: *DEFERRED members, under JOURNAL_DEFERRED rows; of a
 * repository that is missing, or whose disk fails, all. An error means that
 * serving would break a promise.
 */
int recover_all(struct store_recovery *rec, uint64_t *deferred);

/* Once more for what is deferred of REPO, which has come back, or is mended, or
 * in which foreign locks stood. Safe beside a serving daemon: each ref is
 * locked first, and of windows from LIVE on no lock is touched. *DEFERRED:
 * what is still deferred of it. An error: all of it, and nothing may be written
 * there. */
int recover_deferred(struct store_recovery *rec, struct repo *repo,
    uint64_t *deferred);

#endif
