/*
 * The members of struct deferred, and the calls for the progress of a retry.
 * Private to the files of deferred/.
 */
#ifndef STORE_DEFERRED_INTERNAL_H
#define STORE_DEFERRED_INTERNAL_H

#include "daemon/base/mutex.h"
#include "daemon/store/deferred/deferred.h"

struct deferred_repo;
struct deferred_update;

struct deferred {
	const struct store_parts *cfg;
	struct mutex rows, telling; /* order of locks: deferred.h */

	/* Everything below is under MUTEX. */
	struct mutex mutex;
	struct deferred_repo *repos;     /* a hash; NULL: none */
	struct deferred_update *updates; /* a hash; NULL: none */
	uint64_t nr_ended;               /* see deferred_nr_ended() */
	bool is_turn_due, has_turn;
	size_t nr_lacking;        /* repositories */
	int64_t lacking_since_ns; /* there is one */
};

/* Did the last search of REPO for locks not end (-EUSERS)? Then an admission
 * does not repeat the search yet, because deferred_next() has its turn
 * first. */
bool deferred_is_endless(struct deferred *d, uint64_t repo);
/* A retry in REPO took TOOK_NS and is about to fail, as later retries may for a
 * long time. So the next retries wait for a multiple of TOOK_NS. Otherwise an
 * owner with many records would keep a thread busy, and the rows of other
 * machines would have to wait. */
void deferred_set_pause(struct deferred *d, uint64_t repo, int64_t took_ns);
/* The error of the last retry in REPO, if the next one has to wait; or 0. */
int deferred_paused(struct deferred *d, uint64_t repo);
/* deferred_update.c: update INDEX of row LSN has ended. */
void deferred_end_update(struct deferred *d, uint64_t lsn, uint32_t index);
void deferred_free_updates(struct deferred *d);

/* A retry in REPO begins, before it reads the journal. MEMBERS is the number of
 * deferred members now. TOKENS are the batches that left locks, sorted, in an
 * array that the caller frees. 0, -ENOMEM. */
int deferred_begin_retry(struct deferred *d, uint64_t repo, uint64_t *members,
    uint64_t **tokens, size_t *nr);
/* No lock of the NR sorted TOKENS is left. */
void deferred_unlocked(struct deferred *d, uint64_t repo,
    const uint64_t *tokens, size_t nr);
/* A retry that began with MEMBERS ended, and LEFT members are still deferred.
 * Members that a batch deferred after the retry read the journal stay noted.
 * False: members are still deferred. */
bool deferred_end_retry(struct deferred *d, uint64_t repo, uint64_t members,
    uint64_t left);
/* A retry failed with ERR. False: the last retry failed with the same error. */
bool deferred_fail_retry(struct deferred *d, uint64_t repo, int err);

#endif
