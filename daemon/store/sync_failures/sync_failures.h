/*
 * The file systems that failed to sync since they were mounted. The kernel
 * reports a failure once, so refd must not forget the failure, not even when
 * refd crashes.
 *
 *	begin -> (failed) -> end	around each syncfs
 *	deferred			the records will be redone
 *	read_back			objects there were read from the disk
 *
 * The key of a file system is its life (sys->mount_id). After the end of a life
 * the memory has the content of the disk again, so its failures are over.
 *
 * The failures are in a file of the state directory. The page cache outlives
 * the process, and every life ends with the page cache, so refd never syncs
 * this file. A sync is marked before it begins, so a crash cannot hide the
 * result.
 *
 * The struct has a mutex; any thread. Calls block while the file is written. D
 * may be NULL: then nothing has failed, and nothing is kept.
 */
#ifndef STORE_SYNC_FAILURES_H
#define STORE_SYNC_FAILURES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/mutex.h"
#include "daemon/base/sys.h"

struct lacking;
struct life;

/* Made by sync_failures_open(). Only sync_failures.c and suspect_store.c access
 * the members. */
struct sync_failures {
	const struct sys *sys;
	int fd;     /* of the file */
	int unread; /* sync_failures_unread() */
	atomic_bool any;
	atomic_int unmarked;      /* sync_failures_unmarked() */
	atomic_int told_unmarked; /* the last UNMARKED in the log */
	/* Under MUTEX. */
	struct mutex mutex;
	struct life *lives; /* in the order of their lines */
	size_t nr;

	/* Object stores that lack objects (suspect_store.c). LACKING_LOCK
	 * protects the list, and is held while a store is read from the disk,
	 * for minutes. A thread with LACKING_LOCK may take MUTEX, but never the
	 * other way round. */
	struct mutex lacking_lock;
	struct lacking *lacking;
	atomic_uint_fast64_t round; /* of the barrier */
};

#define SYNC_FAILURES_NONE INT64_MAX

/* Reads the failures that earlier processes of this boot had. A sync that was
 * under way at the end of its process counts as failed, because its result is
 * unknown. IS_FIRST: there was no earlier process. Negative errno: the file
 * can't be written. */
int sync_failures_open(const struct sys *sys, int state_fd, const char *boot_id,
    bool is_first, struct sync_failures **d);
/* The negative errno of reading the file, or 0. -EBADMSG: the file is damaged.
 * After an error every life counts as failed. */
int sync_failures_unread(const struct sync_failures *d);
void sync_failures_free(struct sync_failures *d);

/* A sync begins. Changes before SINCE_NS are durable, and SINCE_NS is 0 if no
 * such time is known. Negative errno: the sync may not begin. */
int sync_failures_begin(struct sync_failures *d, uint64_t life,
    int64_t since_ns);
/* The error of marking the last sync, or 0. */
int sync_failures_unmarked(const struct sync_failures *d);
/* Did sync_failures_unmarked() change since the last call? *ERR: the new
 * value. */
bool sync_failures_unmarked_changed(struct sync_failures *d, int *err);
void sync_failures_add(struct sync_failures *d, uint64_t life);
void sync_failures_end(struct sync_failures *d, uint64_t life);

/* Does LIFE have records that are not deferred and must be redone from the
 * disk? */
bool sync_failures_has_rows(struct sync_failures *d, uint64_t life);
/* May anything on LIFE be in memory alone? LIFE is the life of the file system
 * in memory, and not the life in a record. Recovery after a power loss redoes
 * older records in the present life, which can fail, too. */
bool sync_failures_is_unsure(struct sync_failures *d, uint64_t life);
void sync_failures_deferred(struct sync_failures *d, uint64_t life);
/* A start has redone or deferred the records of all lives. */
void sync_failures_recovered(struct sync_failures *d);

/* Did any file system fail, and how many did? The first call takes no lock. */
bool sync_failures_any(const struct sync_failures *d);
size_t sync_failures_count(struct sync_failures *d);
/* The earliest time at which a change in the directory DEV and INO on LIFE was
 * made that may be in memory alone. SYNC_FAILURES_NONE: there is no such
 * change, because LIFE never failed, or because the directory was read from the
 * disk since. Pass *NTH to sync_failures_read_back(), which does nothing if
 * LIFE has failed again. */
int64_t sync_failures_since(struct sync_failures *d, uint64_t life,
    uint64_t dev, uint64_t ino, unsigned *nth);
void sync_failures_read_back(struct sync_failures *d, uint64_t life,
    uint64_t dev, uint64_t ino, unsigned nth);

#endif
