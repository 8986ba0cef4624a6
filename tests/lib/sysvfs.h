/*
 * An SQLite VFS over struct sys, so that a test can run the journal on a model
 * of a disk (memfs.h), or make single calls fail.
 *
 * Files are those of struct sys, with the same order of calls as in SQLite's
 * own VFS: fdatasync for a sync, and a sync of the directory, with errors
 * ignored, after the first sync of a new journal or WAL. Locks and the WAL's
 * shared memory are in the heap: all connections are in this process, of any
 * thread. The last close frees the shared memory, and the next open recovers
 * the WAL from the file.
 */
#ifndef TESTS_LIB_SYSVFS_H
#define TESTS_LIB_SYSVFS_H

#include "daemon/base/sys.h"

struct sysvfs;

/* NAME is for journal_config.vfs; paths must be absolute. NAME and SYS are
 * borrowed. NULL: out of memory. */
struct sysvfs *sysvfs_new(const char *name, const struct sys *sys);
/* No connection may be open. */
void sysvfs_free(struct sysvfs *vfs);

/* Number of requested syncs of the main database and of its WAL. */
unsigned long sysvfs_db_syncs(struct sysvfs *vfs);
unsigned long sysvfs_wal_syncs(struct sysvfs *vfs);

#endif
