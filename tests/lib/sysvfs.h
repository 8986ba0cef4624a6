/*
 * An SQLite VFS over struct sys, so that a test can put a model of a disk
 * beneath the journal (memfs.h), or fail its calls one by one.
 *
 * Files are those of struct sys; what SQLite's own VFS does with the kernel
 * is done here in the same order: fdatasync for a sync, the directory after
 * the first sync of a new journal or WAL, its errors passed over. Locks and
 * the WAL's shared memory are in the heap: all connections are in this
 * process, of any thread. When the last one is closed the shared memory is
 * gone, and the next to open recovers the WAL from the file.
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

/* Syncs asked for since it was made, of the main database and of its WAL. */
unsigned long sysvfs_db_syncs(struct sysvfs *vfs);
unsigned long sysvfs_wal_syncs(struct sysvfs *vfs);

#endif
