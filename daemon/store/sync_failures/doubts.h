/*
 * Which file systems failed to sync since they are in memory. A kernel tells
 * of that once, so who was told must not forget it, not even by being killed.
 *
 *	begin -> (failed) -> end	around each syncfs
 *	parked				its records will be redone
 *	proven				objects there were read from the disk
 *
 * A file system is known by its life (sys->mount_id). When that is over,
 * memory is what the disk was, and its doubts are over too.
 *
 * Kept in a file of the state directory, which is written and never synced:
 * what ends a process leaves the page cache, and what ends the page cache ends
 * every doubt. A sync is marked before it begins, so that there is no moment at
 * which a kill could hide what it answered.
 *
 * Locks itself; any thread. D may be NULL: then nothing is in doubt, or kept.
 */
#ifndef STORE_DOUBTS_H
#define STORE_DOUBTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/sys.h"

struct lacking;
struct life;

/* Made by doubts_open(). Only doubts.c and doubted.c access the members. */
struct doubts {
	const struct sys *sys;
	int fd;     /* of the file */
	int unread; /* doubts_unread() */
	atomic_bool any;
	atomic_int unmarked;      /* doubts_unmarked() */
	atomic_int told_unmarked; /* the last UNMARKED that the log has */
	/* Under MUTEX. */
	pthread_mutex_t mutex;
	struct life *lives; /* in the order of their lines */
	size_t nr;

	/* Object stores that lack objects (doubted.c). LACKING_LOCK protects
	 * the list, and is held while a store is read from the disk: for
	 * minutes. MUTEX is taken under it, never the other way round. */
	pthread_mutex_t lacking_lock;
	struct lacking *lacking;
	atomic_uint_fast64_t round; /* of the barrier */
};

#define DOUBTS_NONE INT64_MAX

/* Those of this boot, and of a process before this one: a sync that was under
 * way when that ended counts as failed. IS_FIRST: there was none. Negative
 * errno: the file can't be written. */
int doubts_open(const struct sys *sys, int state_fd, const char *boot_id,
    bool is_first, struct doubts **d);
/* 0, or the negative errno for which not all of it could be read; -EBADMSG: it
 * was not what is written there. Then any life may have failed. */
int doubts_unread(const struct doubts *d);
void doubts_free(struct doubts *d);

/* All that changed before SINCE was durable when this sync began (0: nobody
 * knows of anything). Negative errno: it may not begin. */
int doubts_begin(struct doubts *d, uint64_t life, int64_t since_ns);
/* 0, or why the last one could not be marked. */
int doubts_unmarked(const struct doubts *d);
/* Did doubts_unmarked() change since the last call? *ERR is the new value. */
bool doubts_unmarked_changed(struct doubts *d, int *err);
void doubts_failed(struct doubts *d, uint64_t life);
void doubts_end(struct doubts *d, uint64_t life);

/* Must records of LIFE be redone from the disk, that are not parked? */
bool doubts_has_rows(struct doubts *d, uint64_t life);
void doubts_parked(struct doubts *d, uint64_t life);
/* By a start, of all. */
void doubts_recovered(struct doubts *d);

/* Any at all? No lock, for who asks often. How many file systems. */
bool doubts_any(const struct doubts *d);
size_t doubts_count(struct doubts *d);
/* What changed on LIFE at SINCE or later, in the directory DEV and INO, may be
 * in memory alone. DOUBTS_NONE: it was proven, or LIFE never failed. *NTH
 * goes to doubts_prove(), which does nothing where LIFE has failed since. */
int64_t doubts_since(struct doubts *d, uint64_t life, uint64_t dev,
    uint64_t ino, unsigned *nth);
void doubts_prove(struct doubts *d, uint64_t life, uint64_t dev, uint64_t ino,
    unsigned nth);

#endif
