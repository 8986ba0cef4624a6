/*
 * The mounted file systems of open repositories and of their objects, and their
 * syncs.
 *
 * A struct fs belongs to its struct repos and is freed together with it, so a
 * caller needs no reference. The descriptors may be closed after a failure, so
 * a caller may use them only between fs_enter() and fs_leave(), or with a
 * repository on the file system.
 *
 * Any thread. Functions that sync block for as long as the disk does, and the
 * others only for repos->mutex. Nothing logs, because struct repos_report is
 * told of failures.
 */
#ifndef STORE_FS_H
#define STORE_FS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/mutex.h"
#include "daemon/base/sys.h"
#include "proto/limits.h"

struct repos;

/*
 * The state of a struct fs is the state of one opening of a mounted file
 * system. The state of the mounted file system itself outlives the opening and
 * the process (sync_failures/sync_failures.h).
 *
 *	event					OPEN	FAILED	GONE
 *	a sync failed, fs_fail()		FAILED	-	n/a
 *	nobody uses it, and its records are	n/a	GONE	n/a
 *	  deferred, fs_let_go()
 *
 * After GONE the file system may be opened again, as a new struct fs, once a
 * sync succeeds. No sync fails in GONE, because a thread that syncs uses the
 * opening.
 */
enum fs_state {
	FS_OPEN,
	/* Data in memory may be missing on the disk, so nobody gets a
	 * repository there, and no sync begins. Syncs and batches that have
	 * begun may end, unless they rely on files of another writer
	 * (tables_seal.c). */
	FS_FAILED,
	FS_GONE /* the descriptors are closed; no record needs a sync of it */
};

struct fs {
	uint64_t dev, mount;
	/* A directory for the syncfs of the checkpoint, open from before the
	 * first rename there, so that nobody can mount the disk anew with lost
	 * writes in between. */
	int fd;
	/* A directory for the syncfs of the barrier. The kernel reports an
	 * error once to every descriptor, and both the barrier and the
	 * checkpoint need the report, so there are two descriptors. */
	int objects_fd;
	/* A small file for ctime and fsync. -1: so far only objects were
	 * needed. */
	atomic_int marker_fd;
	/* The begin of the last completed syncfs, by the clock of the ctimes;
	 * 0: none since the start, or the clock is not known. Under
	 * repos->mutex. */
	int64_t synced_ns;
	int64_t synced_offset_ns; /* wall clock less monotonic, then */
	/* The duration of the last syncfs, which also writes the data of other
	 * processes, and of the last fsync of a pack. Under repos->mutex. */
	int64_t syncfs_took_ns, fsync_took_ns;
	atomic_bool touched;   /* published to since its last checkpoint */
	atomic_bool promised;  /* and an answer promised durability */
	bool fsync_covers_all; /* sys->fsync_covers_all */
	/* Held through the sync of a checkpoint. */
	struct mutex checkpoint;
	/* Held through a sync of objects, until its failure is noted, because
	 * the kernel does not report the failure to a second thread. */
	struct mutex objects_sync;
	_Atomic enum fs_state state; /* changed under repos->mutex */
	unsigned nr_syncing;         /* threads; under repos->mutex */
	/* The first batch that may have locks there; 0: not asked for yet.
	 * Under repos->mutex. */
	uint64_t first_batch;
	struct fs *next;
};

/* *FS is the file system of the directory FD, for objects outside of
 * repositories. Negative errno; -EIO: the file system failed to sync. */
int fs_of(struct repos *repos, int fd, struct fs **fs);
/* The first of all file systems. New file systems are added only at the head,
 * so the caller may follow NEXT without a lock. */
struct fs *fs_first(struct repos *repos);
/* The path of an open repository on FS, or of a directory that the kernel
 * knows. "": no path is known. */
void fs_path(struct repos *repos, const struct fs *fs,
    char path[REFD_PATH_MAX]);

/* The wall clock, which file systems use, less the monotonic clock. */
int64_t fs_clock_offset(const struct sys *sys);
/* Everything on DEV that changed FS_SLACK_NS before this time is durable. 0: no
 * such time is known, or the clock was set back. */
int64_t fs_synced_ns(struct repos *repos, uint64_t dev);

/* FS failed to sync with ERR, so from now on nobody gets a repository there.
 * The first failure is reported. */
void fs_fail(struct repos *repos, struct fs *fs, int err);
/* Around every sync of FS, so that meanwhile the descriptors stay open, and a
 * crash does not hide the result. -EIO: FS failed, so no further sync may
 * begin. */
int fs_enter(struct repos *repos, struct fs *fs);
void fs_leave(struct repos *repos, struct fs *fs);
/* Does anybody have a repository on FS, or sync FS? */
bool fs_is_in_use(struct repos *repos, const struct fs *fs);
/* Closes the descriptors of FS, which failed and which nobody uses, under the
 * mutex `rows` of deferred.h. */
void fs_let_go(struct repos *repos, struct fs *fs);

/* fs_sync.c */

/* Touches the marker of FS and syncs FS through FD. After success all objects
 * and all other files on FS are durable. Returns 0, or a negative errno after a
 * call of fs_fail(). */
int fs_sync(struct repos *repos, struct fs *fs, int fd);
/* Makes all published refs on FS durable. If another thread is syncing, the
 * call waits for this sync, because the caller forgets records afterwards. 0 or
 * negative errno, as above. */
int fs_sync_published(struct repos *repos, struct fs *fs);
/* Called once an interval, to notice a clock that was set back. */
void fs_sync_watch_clock(struct repos *repos);
/* Reports that syncs cannot be marked any more, or can be marked again. */
void fs_sync_tell_unmarked(struct repos *repos);

#endif
