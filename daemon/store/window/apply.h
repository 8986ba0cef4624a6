/*
 * A window's way through the disk, from taken to answered, in one thread.
 *
 * Any number of threads may apply windows at once, each its own; windows
 * whose names meet lose nothing but time (one finds the other's locks).
 * Blocks for as long as the disk does. Nothing logs; what went wrong is on
 * the updates. Returns nothing: after it each update is decided, or is given
 * back with the reason in update->again.
 */
#ifndef STORE_APPLY_H
#define STORE_APPLY_H

#include <stdatomic.h>

#include "daemon/store/refs/flush.h"
#include "daemon/store/journal/journal.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/txn.h"

/* So many windows at once, one for each user, may be rewriting a packed-refs
 * of more than PACKED_LARGE. */
#define APPLY_LARGE_MAX 4

struct applier {
	const struct sys *sys;
	struct repos *repos;
	struct journal *journal;
	enum refd_durability durability; /* at least, whoever asks */
	struct flusher *flusher;         /* or NULL */
	int64_t prepare_max_ns; /* non-atomic updates beyond it go again */
	/* So many refs made by one transaction are worth a packed-refs of their
	 * own (packed_pays). */
	size_t packed_least;
	atomic_uint_fast64_t next_token;
	atomic_uint_fast64_t large_users[APPLY_LARGE_MAX]; /* uid + 1, or 0 */
	/*
	 * The journal, as the store guards it: commits ROWS, with FLUSH so
	 * that they last, having brought the journal back where a sync failed.
	 * 0; negative: definitely not committed; JOURNAL_UNKNOWN.
	 */
	int (*commit)(void *arg, struct journal_row *rows, size_t nr,
	    bool flush);
	/* W has the locks it can get: what it waits for from now on is the
	 * journal. Once for each window that gets so far. May be NULL. */
	void (*prepared)(void *arg, struct window *w);
	/* A reflog line could not be written: it is parked, to be tried again. */
	void (*owe)(void *arg, const struct repo *repo);
	/* Window TOKEN is over, and locks or staged values of it stand in REPO,
	 * which say nothing: to be removed. */
	void (*left)(void *arg, const struct repo *repo, uint64_t token);
	/* Row LSN could not be published to its end, and its locks stand: the
	 * next start needs it. May be NULL. */
	void (*keep)(void *arg, uint64_t lsn);
	/* Its update INDEX is answered unknown for that, and so it stays until
	 * recovery has finished or voided it. May be NULL. */
	void (*unfinished)(void *arg, uint64_t lsn, uint32_t index);
	void *arg;
};

void apply_window(struct applier *ap, struct window *w);

#endif
