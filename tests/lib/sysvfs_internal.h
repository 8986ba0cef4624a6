/* Shared by the two files of the VFS; no other file includes this header. */
#ifndef TESTS_LIB_SYSVFS_INTERNAL_H
#define TESTS_LIB_SYSVFS_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>

#include "tests/lib/sysvfs.h"

struct shm_node;

struct sysvfs {
	sqlite3_vfs base;
	sqlite3_vfs *os;
	const struct sys *sys;
	_Atomic unsigned long db_syncs, wal_syncs;
};

/* SQLite's own part is first. */
struct sysvfs_file {
	sqlite3_file base;
	struct sysvfs *vfs;
	int fd;
	int type;              /* one of SQLITE_OPEN_* */
	bool is_new;           /* the name is not synced yet */
	char *path;            /* owned */
	struct shm_node *node; /* of a main database */
	int level;             /* the held SQLITE_LOCK_* */
	bool has_shm;
	unsigned shm_shared, shm_exclusive; /* bits of the held locks */
};

/* Shared by the connections to one database: locks, WAL index. */
struct shm_node *sysvfs_node_get(struct sysvfs *vfs, const char *path);
void sysvfs_node_put(struct shm_node *node);

int sysvfs_lock(sqlite3_file *base, int level);
int sysvfs_unlock(sqlite3_file *base, int level);
int sysvfs_check_reserved(sqlite3_file *base, int *is_reserved);

int sysvfs_shm_map(sqlite3_file *base, int region, int size, int extend,
    void volatile **out);
int sysvfs_shm_lock(sqlite3_file *base, int offset, int n, int flags);
void sysvfs_shm_barrier(sqlite3_file *base);
int sysvfs_shm_unmap(sqlite3_file *base, int delete);

#endif
