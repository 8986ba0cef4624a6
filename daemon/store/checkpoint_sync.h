/*
 * The syncs of a checkpoint: a thread for each file system, so that a file
 * system that hangs holds up no other. Private to the store.
 */
#ifndef STORE_CHECKPOINT_SYNC_H
#define STORE_CHECKPOINT_SYNC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/stages.h"
#include "proto/limits.h"

struct fs;

/* Syncs that run at a time. */
#define CHECKPOINT_SYNCS 8

/* A file system, and its last sync. The checkpointer makes them, and frees
 * them when the store is freed. */
struct fs_sync {
	struct store *store;
	struct fs *fs;
	pthread_t thread;
	bool has_thread;     /* to be joined */
	uint64_t lsn, noted; /* of the sync that was started last */
	char path[REFD_PATH_MAX];
	struct fs_sync *next; /* changed under the store's mutex */
	/* Under the store's mutex. */
	struct stage_work work; /* no path: the sync has ended */
	uint64_t lasting; /* records up to this LSN need no replay there */
	int err;          /* what the last sync came to */
};

/*
 * Syncs every file system that records up to *LSN were published to, and
 * waits. From UNTIL on (CLOCK_MONOTONIC) it waits no longer, unless the store is
 * stopping: a sync that has not ended by then goes on, and a later call finds
 * its result. Lowers *LSN to what is durable on all file systems. 0, or
 * negative errno: a file system failed to sync. Checkpointer only.
 */
int checkpoint_sync_all(struct store *s, uint64_t *lsn,
    const struct timespec *until);
/* Has every sync ended? Under the store's mutex. */
bool checkpoint_syncs_ended(const struct store *s);
/* The path of a file system that failed to sync; borrowed until the next
 * checkpoint_sync_all(). NULL: none. Checkpointer only. */
const char *checkpoint_unsynced(struct store *s);
/* Waits for every sync and frees all. The checkpointer has ended; other threads
 * may be at work, and store_progress() may be called. */
void checkpoint_syncs_end(struct store *s);

#endif
