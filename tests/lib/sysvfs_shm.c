/*
 * Locks and shared memory of the VFS, for connections of this process. One
 * mutex guards everything.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "tests/lib/sysvfs_internal.h"

#define REGIONS_MAX 256

struct shm_node {
	LIST_ENTRY(shm_node) link;
	struct sysvfs *vfs;
	char *path;
	unsigned refs;

	unsigned nr_shared;
	struct sysvfs_file *reserved, *pending; /* holders at this level */

	unsigned nr_mapped;
	void *regions[REGIONS_MAX];
	unsigned slot_shared[SQLITE_SHM_NLOCK];
	bool slot_exclusive[SQLITE_SHM_NLOCK];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, shm_node) nodes = LIST_HEAD_INITIALIZER(nodes);

struct shm_node *sysvfs_node_get(struct sysvfs *vfs, const char *path)
{
	struct shm_node *node;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(node, &nodes, link)
		if (node->vfs == vfs && strcmp(node->path, path) == 0)
			break;
	if (node == NULL) {
		node = calloc(1, sizeof(*node));
		if (node != NULL)
			node->path = strdup(path);
		if (node == NULL || node->path == NULL) {
			free(node);
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		node->vfs = vfs;
		LIST_INSERT_HEAD(&nodes, node, link);
	}
	node->refs++;
	pthread_mutex_unlock(&lock);
	return node;
}

void sysvfs_node_put(struct shm_node *node)
{
	pthread_mutex_lock(&lock);
	if (--node->refs == 0) {
		LIST_REMOVE(node, link);
		free(node->path);
		free(node);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- locks of the database file ---- */

static int take(struct shm_node *node, struct sysvfs_file *f, int level)
{
	if (f->level == SQLITE_LOCK_NONE) {
		if (node->pending != NULL)
			return SQLITE_BUSY;
		node->nr_shared++;
		f->level = SQLITE_LOCK_SHARED;
	}
	if (level >= SQLITE_LOCK_RESERVED) {
		if (node->reserved != NULL && node->reserved != f)
			return SQLITE_BUSY;
		node->reserved = f;
		f->level = SQLITE_LOCK_RESERVED;
	}
	if (level == SQLITE_LOCK_EXCLUSIVE) {
		node->pending = f;
		f->level = SQLITE_LOCK_PENDING;
		if (node->nr_shared > 1)
			return SQLITE_BUSY;
		f->level = SQLITE_LOCK_EXCLUSIVE;
	}
	return SQLITE_OK;
}

int sysvfs_lock(sqlite3_file *base, int level)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;
	int rc;

	if (f->node == NULL || level <= f->level)
		return SQLITE_OK;
	pthread_mutex_lock(&lock);
	rc = take(f->node, f, level);
	pthread_mutex_unlock(&lock);
	return rc;
}

int sysvfs_unlock(sqlite3_file *base, int level)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;
	struct shm_node *node = f->node;

	if (node == NULL || level >= f->level)
		return SQLITE_OK;
	pthread_mutex_lock(&lock);
	if (node->reserved == f)
		node->reserved = NULL;
	if (node->pending == f)
		node->pending = NULL;
	if (level == SQLITE_LOCK_NONE)
		node->nr_shared--;
	f->level = level;
	pthread_mutex_unlock(&lock);
	return SQLITE_OK;
}

int sysvfs_check_reserved(sqlite3_file *base, int *is_reserved)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;

	pthread_mutex_lock(&lock);
	*is_reserved = f->node != NULL && f->node->reserved != NULL;
	pthread_mutex_unlock(&lock);
	return SQLITE_OK;
}

/* ---- the WAL's index ---- */

int sysvfs_shm_map(sqlite3_file *base, int region, int size, int extend,
    void volatile **out)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;
	struct shm_node *node = f->node;

	if (region >= REGIONS_MAX)
		return SQLITE_IOERR_SHMSIZE;
	pthread_mutex_lock(&lock);
	if (!f->has_shm) {
		f->has_shm = true;
		node->nr_mapped++;
	}
	if (node->regions[region] == NULL && extend)
		node->regions[region] = calloc(1, (size_t)size);
	*out = node->regions[region];
	pthread_mutex_unlock(&lock);
	return *out == NULL && extend ? SQLITE_NOMEM : SQLITE_OK;
}

static int shm_take(struct shm_node *node, struct sysvfs_file *f, int offset,
    int n, bool is_shared)
{
	int i;

	for (i = offset; i < offset + n; i++) {
		unsigned bit = 1U << i;
		unsigned mine = f->shm_shared & bit ? 1 : 0;

		if (node->slot_exclusive[i] && !(f->shm_exclusive & bit))
			return SQLITE_BUSY;
		if (!is_shared && node->slot_shared[i] > mine)
			return SQLITE_BUSY;
	}
	for (i = offset; i < offset + n; i++) {
		unsigned bit = 1U << i;

		if (is_shared && !(f->shm_shared & bit)) {
			node->slot_shared[i]++;
			f->shm_shared |= bit;
		} else if (!is_shared) {
			node->slot_exclusive[i] = true;
			f->shm_exclusive |= bit;
		}
	}
	return SQLITE_OK;
}

static void shm_release(struct shm_node *node, struct sysvfs_file *f,
    int offset, int n)
{
	int i;

	for (i = offset; i < offset + n; i++) {
		unsigned bit = 1U << i;

		if (f->shm_shared & bit)
			node->slot_shared[i]--;
		if (f->shm_exclusive & bit)
			node->slot_exclusive[i] = false;
		f->shm_shared &= ~bit;
		f->shm_exclusive &= ~bit;
	}
}

int sysvfs_shm_lock(sqlite3_file *base, int offset, int n, int flags)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;
	int rc = SQLITE_OK;

	pthread_mutex_lock(&lock);
	if (flags & SQLITE_SHM_UNLOCK)
		shm_release(f->node, f, offset, n);
	else
		rc = shm_take(f->node, f, offset, n, flags & SQLITE_SHM_SHARED);
	pthread_mutex_unlock(&lock);
	return rc;
}

void sysvfs_shm_barrier(sqlite3_file *base)
{
	(void)base;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

int sysvfs_shm_unmap(sqlite3_file *base, int delete)
{
	struct sysvfs_file *f = (struct sysvfs_file *)base;
	struct shm_node *node = f->node;
	int i;

	(void)delete;
	if (!f->has_shm)
		return SQLITE_OK;
	pthread_mutex_lock(&lock);
	shm_release(node, f, 0, SQLITE_SHM_NLOCK);
	f->has_shm = false;
	if (--node->nr_mapped == 0)
		for (i = 0; i < REGIONS_MAX; i++) {
			free(node->regions[i]);
			node->regions[i] = NULL;
		}
	pthread_mutex_unlock(&lock);
	return SQLITE_OK;
}
