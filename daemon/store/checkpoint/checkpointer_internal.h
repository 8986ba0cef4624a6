/*
 * The state of the checkpointer. Private to the files of checkpoint/:
 * checkpointer.c is the thread, checkpoint.c a round, checkpoint_sync.c the
 * syncs of a round, and checkpoint_tidy.c the care for stacks of reftables.
 */
#ifndef STORE_CHECKPOINTER_INTERNAL_H
#define STORE_CHECKPOINTER_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "daemon/base/mutex.h"
#include "daemon/store/checkpoint/checkpointer.h"
#include "daemon/store/stages.h"

/* A file system, and its last sync. Only the thread of the checkpointer makes
 * and frees this struct. */
struct fs_sync {
	struct checkpointer *owner;
	struct fs *fs;
	uint64_t lsn; /* of the latest sync */
	char path[REFD_PATH_MAX];
	struct fs_sync *next; /* changed under MUTEX */
	/* Under MUTEX. */
	struct stage_work work; /* no path: no sync is in work */
	bool is_queued;         /* WORK waits for a worker */
	uint64_t lasting; /* records up to this LSN need no replay there */
	int err;          /* result of the last sync */
};

struct checkpointer {
	const struct store_parts *cfg;
	struct journal *journal; /* of cfg.log */
	bool is_started;         /* the thread runs; set before its start */
	pthread_t thread;
	struct work_source source; /* a sync */

	/* Only for the thread, or for checkpointer_once() without the
	 * thread. */
	int64_t wal_copied_ns; /* see copy_wal() */
	uint64_t repos_copied; /* the same */
	struct fs *sync_next;  /* the first to sync; NULL: any */

	/* Everything below: under MUTEX. */
	struct mutex mutex;
	/* A question, many updates, the end of a sync, new intervals, or
	 * STOPPING. CLOCK_MONOTONIC, because a wall clock that is set back must
	 * not stop the checkpoints. */
	pthread_cond_t cond;
	struct question_fifo asked;
	bool stopping;
	size_t nr_published; /* updates since the begin of the last round */
	int64_t checkpoint_interval_ns, durability_interval_ns;
	struct stage_work work;
	struct fs_sync *syncs;
	uint64_t nr_done, nr_failed;
	int64_t done_ns, took_ns; /* of the last sync */
	uint64_t journal_bytes;
};

/* checkpointer.c */

/* WORK is at PATH from now on; NULL: WORK has ended. */
void checkpointer_set_work(struct checkpointer *c, struct stage_work *work,
    const char *path);
/* The end of the round that begins now (CLOCK_MONOTONIC). Under MUTEX. */
struct timespec checkpointer_deadline(struct checkpointer *c);

/* checkpoint.c: answers the questions that the last round, with result R,
 * decides. A question stays if it only waits for a batch to end. */
void checkpoint_answer(struct checkpointer *c, int r);
/* Need nothing be made durable now? */
bool checkpoint_may_wait(struct checkpointer *c);

/* checkpoint_sync.c */

/*
 * Syncs every file system that has published refs of records up to *LSN, and
 * waits. After UNTIL (CLOCK_MONOTONIC) it no longer waits, unless the
 * checkpointer is stopping: a sync that has not ended by then goes on, and a
 * later call finds its result. Lowers *LSN to the highest LSN that is durable
 * on all file systems. 0, or negative errno: a file system failed to sync.
 */
int checkpoint_sync_all(struct checkpointer *c, uint64_t *lsn,
    const struct timespec *until);
/* work_source.work: runs a sync. */
bool checkpoint_sync_next(void *arg);
/* Has every sync ended? Under MUTEX. */
bool checkpoint_sync_has_ended(const struct checkpointer *c);
/* The path of a file system that failed to sync; borrowed until the next
 * checkpoint_sync_all(). NULL: none. */
const char *checkpoint_sync_failed(struct checkpointer *c);
/* checkpoint_tidy.c: the stacks of reftables on FS around a sync of FS. */

struct checkpoint_tidy {
	struct checkpointer *owner;
	struct fs *fs;
	struct repo **repos; /* each with a reference */
	size_t nr;
	uint64_t last_lsn; /* of all rows that were published before the sync */
};
/* Before the sync: the tables replaced so far are due. */
void checkpoint_tidy_begin(struct checkpoint_tidy *t, struct checkpointer *c,
    struct fs *fs);
/* After the sync. If the sync SUCCEEDED, removes the due tables, and merges
 * tables for a while. Blocks on the disk. */
void checkpoint_tidy_end(struct checkpoint_tidy *t, bool succeeded);

/* Waits for every sync and frees all. The thread has ended; other threads may
 * be at work, and checkpointer_progress() may be called. */
void checkpoint_sync_end(struct checkpointer *c);

#endif
