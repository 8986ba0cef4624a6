/*
 * Settings, faults and counters for tests.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "tests/lib/memfs_internal.h"

/* ---- mounts and modes ---- */

struct memfs_mount *memfs_mount_new(struct memfs *fs, struct inode *point)
{
	struct memfs_mount *mnt = memfs_grow(NULL, NULL, 1, sizeof(*mnt));

	if (fs->nr_mounts == MEMFS_MOUNTS_MAX)
		abort();
	mnt->fs = fs;
	mnt->index = fs->nr_mounts;
	mnt->dev = mnt->fs_id = 0x801 + fs->nr_mounts;
	mnt->mount_id = fs->next_mount_id++;
	mnt->next_ino = 2;
	TAILQ_INIT(&mnt->dirty);
	mnt->root = inode_new(mnt, S_IFDIR | 0777);
	mnt->root->links = mnt->root->refs = 1;
	mnt->point = point;
	if (point != NULL)
		point->covered = mnt;
	fs->mounts[fs->nr_mounts++] = mnt;
	return mnt;
}

unsigned memfs_mount(struct memfs *fs, const char *path)
{
	struct inode *node;
	unsigned index;

	memfs_mkdirs(fs, path);
	pthread_mutex_lock(&fs->lock);
	fs->cur = &fs->proc[1];
	if (walk_to(fs, AT_FDCWD, path, WALK_FOLLOW, &node) < 0 ||
	    node->nr_names > 0)
		abort();
	index = memfs_mount_new(fs, node)->index;
	pthread_mutex_unlock(&fs->lock);
	return index;
}

unsigned memfs_nr_mounts(struct memfs *fs)
{
	return fs->nr_mounts;
}

void memfs_set_mode(struct memfs *fs, enum memfs_mode mode)
{
	pthread_mutex_lock(&fs->lock);
	fs->mode = mode;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_set_room(struct memfs *fs, unsigned mount, int64_t bytes,
    int64_t inodes)
{
	struct memfs_mount *mnt = fs->mounts[mount];

	pthread_mutex_lock(&fs->lock);
	mnt->has_block_limit = bytes >= 0;
	mnt->blocks_left = bytes / MEMFS_PAGE;
	mnt->has_inode_limit = inodes >= 0;
	mnt->inodes_left = inodes;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_set_dead(struct memfs *fs, unsigned mount, int err)
{
	pthread_mutex_lock(&fs->lock);
	fs->mounts[mount]->dead = err;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_set_max_fds(struct memfs *fs, unsigned nr)
{
	pthread_mutex_lock(&fs->lock);
	fs->max_fds = nr;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_hide_types(struct memfs *fs, bool hide)
{
	pthread_mutex_lock(&fs->lock);
	fs->hides_types = hide;
	pthread_mutex_unlock(&fs->lock);
}

/* ---- time ---- */

void memfs_set_tick(struct memfs *fs, int64_t tick_ns)
{
	pthread_mutex_lock(&fs->lock);
	fs->tick = tick_ns;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_shift_wall(struct memfs *fs, int64_t ns)
{
	pthread_mutex_lock(&fs->lock);
	fs->wall += ns;
	pthread_mutex_unlock(&fs->lock);
}

/* ---- faults ---- */

static void arm(struct memfs *fs, struct memfs_fault fault)
{
	pthread_mutex_lock(&fs->lock);
	fs->fault = fault;
	fs->fault.is_armed = true;
	fs->was_hit = false;
	fs->hit[0] = '\0';
	pthread_mutex_unlock(&fs->lock);
}

void memfs_fail(struct memfs *fs, unsigned long n, int err)
{
	arm(fs,
	    (struct memfs_fault){ .call = MEMFS_NR_CALLS,
		.left = n,
		.err = err });
}

void memfs_fail_call(struct memfs *fs, enum memfs_call call, unsigned long n,
    int err)
{
	arm(fs,
	    (struct memfs_fault){ .call = (int)call, .left = n, .err = err });
}

void memfs_fail_after(struct memfs *fs, enum memfs_call call, unsigned long n,
    int err)
{
	arm(fs,
	    (struct memfs_fault){ .is_after = true,
		.call = (int)call,
		.left = n,
		.err = err });
}

void memfs_die(struct memfs *fs, unsigned long n, int err)
{
	arm(fs,
	    (struct memfs_fault){ .stays = true,
		.call = MEMFS_NR_CALLS,
		.left = n,
		.err = err });
}

void memfs_fail_none(struct memfs *fs)
{
	pthread_mutex_lock(&fs->lock);
	fs->fault.is_armed = false;
	pthread_mutex_unlock(&fs->lock);
}

static void stop_at(struct memfs *fs, unsigned long n, enum memfs_power how)
{
	pthread_mutex_lock(&fs->lock);
	fs->stop_armed = true;
	fs->stop_left = n;
	fs->stop_how = how;
	fs->was_hit = false;
	fs->hit[0] = '\0';
	pthread_mutex_unlock(&fs->lock);
}

void memfs_crash_at(struct memfs *fs, unsigned long n)
{
	stop_at(fs, n, POWER_KILLED);
}

void memfs_power_loss_at(struct memfs *fs, unsigned long n)
{
	stop_at(fs, n, POWER_CUT);
}

void memfs_between(struct memfs *fs, unsigned long n,
    void (*fn)(struct memfs *fs, void *arg), void *arg)
{
	pthread_mutex_lock(&fs->lock);
	fs->between_armed = fn != NULL;
	fs->between_left = n;
	fs->between = fn;
	fs->between_arg = arg;
	pthread_mutex_unlock(&fs->lock);
}

/* ---- counts ---- */

static unsigned long read_count(struct memfs *fs, const unsigned long *count)
{
	unsigned long n;

	pthread_mutex_lock(&fs->lock);
	n = *count;
	pthread_mutex_unlock(&fs->lock);
	return n;
}

unsigned long memfs_nr_calls(struct memfs *fs)
{
	return read_count(fs, &fs->nr_calls);
}

unsigned long memfs_nr_changes(struct memfs *fs)
{
	return read_count(fs, &fs->nr_changes);
}

unsigned long memfs_bad_fds(struct memfs *fs)
{
	return read_count(fs, &fs->bad_fds);
}

unsigned long memfs_bad_syncs(struct memfs *fs)
{
	return read_count(fs, &fs->bad_syncs);
}

unsigned long memfs_open_fds(struct memfs *fs)
{
	return read_count(fs, &fs->nr_open);
}

bool memfs_was_hit(struct memfs *fs)
{
	bool was_hit;

	pthread_mutex_lock(&fs->lock);
	was_hit = fs->was_hit;
	pthread_mutex_unlock(&fs->lock);
	return was_hit;
}

const char *memfs_hit(struct memfs *fs)
{
	return fs->hit;
}
