/*
 * The end of a process or of a machine, and the state for the next start.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

#define BOOT_NS 10000000000LL

struct memfs_choice memfs_choose(uint64_t seed)
{
	struct memfs_choice choice = { .seed = seed };
	unsigned i;

	for (i = 0; i < MEMFS_MOUNTS_MAX; i++)
		choice.keep[i] = -1;
	return choice;
}

/* All and nothing are more likely than any number in between, because they show
 * most bugs. */
static size_t pick_prefix(size_t nr, long keep, uint64_t *rng)
{
	uint64_t way = memfs_random(rng) % 4;

	if (keep >= 0)
		return (size_t)keep < nr ? (size_t)keep : nr;
	if (way < 2)
		return way == 0 ? 0 : nr;
	return (size_t)(memfs_random(rng) % (nr + 1));
}

static void cut_mount(struct memfs_mount *mnt,
    const struct memfs_choice *choice)
{
	uint64_t rng = choice->seed + mnt->index * 0x100000000ULL;
	struct inode *node;

	changes_cut(mnt,
	    pick_prefix(mnt->nr_log, choice->keep[mnt->index], &rng));
	while ((node = TAILQ_FIRST(&mnt->dirty)) != NULL)
		data_cut(node, choice->data, &rng);
}

void memfs_boots(struct memfs *fs)
{
	fs->boot++;
	snprintf(fs->boot_id, sizeof(fs->boot_id), "%08x-0000-4000-8000-%012x",
	    fs->boot, fs->boot);
}

static void start_again(struct memfs *fs)
{
	fs->power = POWER_ON;
	fs->calls_when_off = 0;
	fs->stop_armed = false;
	fs->between_armed = false;
	fs->fault.is_armed = false;
}

void memfs_crash(struct memfs *fs)
{
	pthread_mutex_lock(&fs->lock);
	memfs_drop_all_fds(fs, &fs->proc[0]);
	start_again(fs);
	pthread_mutex_unlock(&fs->lock);
}

void memfs_power_loss(struct memfs *fs, const struct memfs_choice *choice)
{
	unsigned i;

	pthread_mutex_lock(&fs->lock);
	memfs_drop_all_fds(fs, NULL);
	for (i = 0; i < fs->nr_mounts; i++) {
		cut_mount(fs->mounts[i], choice);
		fs->mounts[i]->mount_id = fs->next_mount_id++;
	}
	start_again(fs);
	memfs_boots(fs);
	fs->wall += BOOT_NS;
	fs->mono += BOOT_NS;
	fs->booted = fs->mono;
	pthread_mutex_unlock(&fs->lock);
}

/* The descriptors stay open without a file. */
static void strand_fds(struct memfs *fs, const struct memfs_mount *mnt)
{
	struct memfs_open *open;
	struct sys_dir *dir;
	size_t i;

	for (i = 0; i < fs->nr_fds; i++) {
		open = fs->fds[i];
		if (open == NULL || open->is_dead || open->node->mnt != mnt)
			continue;
		open->is_dead = true;
		if (open->node->locker == open)
			open->node->locker = NULL;
		open->node->opens--;
		inode_settle(open->node);
	}
	TAILQ_FOREACH(dir, &fs->dirs, link) {
		if (dir->node != NULL && dir->node->mnt == mnt)
			memfs_dir_strand(fs, dir);
	}
}

void memfs_remount(struct memfs *fs, unsigned mount,
    const struct memfs_choice *choice)
{
	pthread_mutex_lock(&fs->lock);
	strand_fds(fs, fs->mounts[mount]);
	cut_mount(fs->mounts[mount], choice);
	fs->mounts[mount]->mount_id = fs->next_mount_id++;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_put_back(struct memfs *fs, unsigned mount,
    const struct memfs_choice *choice)
{
	struct memfs_mount *mnt = fs->mounts[mount];

	pthread_mutex_lock(&fs->lock);
	memfs_drop_all_fds(fs, NULL);
	cut_mount(mnt, choice);
	mnt->dev ^= 0x100;
	mnt->fs_id += 0x100;
	start_again(fs);
	pthread_mutex_unlock(&fs->lock);
}

const char *memfs_boot_id(struct memfs *fs)
{
	return fs->boot_id;
}

size_t memfs_nr_pending(struct memfs *fs, unsigned mount)
{
	size_t nr;

	pthread_mutex_lock(&fs->lock);
	nr = fs->mounts[mount]->nr_log;
	pthread_mutex_unlock(&fs->lock);
	return nr;
}
