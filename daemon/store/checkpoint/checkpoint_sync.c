/*
 * The syncs of a checkpoint (checkpoint.c), a thread each.
 *
 * The happy path: each file system that was published to gets a thread; the
 * checkpointer waits for all threads; all records up to its LSN are durable.
 *
 * Failures: a file system hangs. The others are synced in every round
 * nevertheless, and no record is forgotten that the file system may still
 * need. A sync that fails is told, and tried again in the next round.
 */
#include "daemon/store/checkpoint/checkpointer_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/repos/repo_seen.h"

/* A repository on FS that was published to, with a reference; NULL: none. */
static struct repo *take_touched(struct repos *repos, const struct fs *fs)
{
	struct repo *repo;

	pthread_mutex_lock(&repos->mutex);
	for (repo = repos->open; repo != NULL; repo = repo->next)
		if (repo->fs == fs && atomic_exchange(&repo->touched, false))
			break;
	if (repo != NULL)
		repo->refs++;
	pthread_mutex_unlock(&repos->mutex);
	return repo;
}

/* A repository that can't be written to keeps its older note. */
static void note_seen(struct checkpointer *c, const struct fs *fs, uint64_t lsn)
{
	struct repo *repo;

	while ((repo = take_touched(c->cfg.repos, fs)) != NULL) {
		repo_seen_write(c->cfg.sys, repo->refd_fd, c->journal, lsn);
		repo_put(c->cfg.repos, repo);
	}
}

/* ---- its thread ---- */

static void *sync_main(void *arg)
{
	struct fs_sync *sync = arg;
	struct checkpointer *c = sync->owner;
	int r;

	note_seen(c, sync->fs, sync->noted);
	r = fs_sync_published(c->cfg.repos, sync->fs);
	pthread_mutex_lock(&c->mutex);
	sync->err = r;
	if (r == 0)
		sync->lasting = sync->lsn;
	sync->work.path = NULL;
	pthread_cond_signal(&c->cond);
	pthread_mutex_unlock(&c->mutex);
	return NULL;
}

static void join(struct fs_sync *sync)
{
	if (sync->has_thread)
		pthread_join(sync->thread, NULL);
	sync->has_thread = false;
}

/* Its last sync has ended. */
static void start(struct fs_sync *sync, uint64_t lsn, uint64_t noted)
{
	struct checkpointer *c = sync->owner;
	int r;

	sync->lsn = lsn;
	sync->noted = noted;
	fs_path(c->cfg.repos, sync->fs, sync->path);
	if (sync->path[0] == '\0')
		strcpy(sync->path, "?");
	pthread_mutex_lock(&c->mutex);
	sync->err = 0;
	pthread_mutex_unlock(&c->mutex);
	checkpointer_set_work(c, &sync->work, sync->path);
	/* checkpointer_once() without the thread: the caller is the only thread
	 * of the store. */
	if (!c->is_started) {
		sync_main(sync);
		return;
	}
	r = pthread_create(&sync->thread, NULL, sync_main, sync);
	sync->has_thread = r == 0;
	if (r == 0)
		return;
	pthread_mutex_lock(&c->mutex);
	sync->err = -r;
	sync->work.path = NULL;
	pthread_mutex_unlock(&c->mutex);
}

/* ---- all of them ---- */

static struct fs_sync *find(const struct checkpointer *c, const struct fs *fs)
{
	struct fs_sync *sync = c->syncs;

	while (sync != NULL && sync->fs != fs)
		sync = sync->next;
	return sync;
}

static struct fs_sync *find_or_add(struct checkpointer *c, struct fs *fs)
{
	struct fs_sync *sync = find(c, fs);

	if (sync != NULL)
		return sync;
	sync = calloc(1, sizeof(*sync));
	if (sync == NULL)
		return NULL;
	sync->owner = c;
	sync->fs = fs;
	pthread_mutex_lock(&c->mutex);
	sync->next = c->syncs;
	c->syncs = sync;
	pthread_mutex_unlock(&c->mutex);
	return sync;
}

/* All that was published there is durable, and nobody syncs it. */
static bool is_clean(struct fs *fs)
{
	bool is_clean;

	if (pthread_mutex_trylock(&fs->checkpoint) != 0)
		return false;
	is_clean = !atomic_load(&fs->touched) && !atomic_load(&fs->promised);
	pthread_mutex_unlock(&fs->checkpoint);
	return is_clean;
}

/* Under MUTEX. */
static size_t nr_running(const struct checkpointer *c)
{
	const struct fs_sync *sync;
	size_t nr = 0;

	for (sync = c->syncs; sync != NULL; sync = sync->next)
		nr += sync->work.path != NULL;
	return nr;
}

bool checkpoint_sync_has_ended(const struct checkpointer *c)
{
	return nr_running(c) == 0;
}

/* Waits until fewer than LIMIT syncs run. False: it is UNTIL. */
static bool wait_for(struct checkpointer *c, size_t limit,
    const struct timespec *until)
{
	bool is_late = false;

	pthread_mutex_lock(&c->mutex);
	while (nr_running(c) >= limit && !is_late)
		if (c->stopping)
			pthread_cond_wait(&c->cond, &c->mutex);
		else
			is_late = pthread_cond_timedwait(&c->cond, &c->mutex,
				      until) == ETIMEDOUT;
	pthread_mutex_unlock(&c->mutex);
	return !is_late;
}

static bool is_running(struct fs_sync *sync)
{
	bool runs;

	pthread_mutex_lock(&sync->owner->mutex);
	runs = sync->work.path != NULL;
	pthread_mutex_unlock(&sync->owner->mutex);
	return runs;
}

/* Nothing needs a sync there. */
static void skip(struct fs_sync *sync, uint64_t lsn)
{
	pthread_mutex_lock(&sync->owner->mutex);
	sync->lasting = lsn;
	sync->err = 0;
	pthread_mutex_unlock(&sync->owner->mutex);
}

/* Lowers *LSN for the file systems from FIRST on. */
static int results(struct checkpointer *c, const struct fs *first,
    uint64_t *lsn)
{
	const struct fs_sync *sync;
	const struct fs *fs;
	uint64_t lasting;
	int r = 0;

	pthread_mutex_lock(&c->mutex);
	for (fs = first; fs != NULL; fs = fs->next) {
		if (fs->state == FS_GONE)
			continue;
		sync = find(c, fs);
		lasting = sync != NULL ? sync->lasting : 0;
		if (lasting < *lsn)
			*lsn = lasting;
		if (sync != NULL && sync->err < 0)
			r = sync->err;
	}
	pthread_mutex_unlock(&c->mutex);
	return r;
}

/* 1: no thread was free in time. 0 or -ENOMEM. */
static int sync_fs(struct checkpointer *c, struct fs *fs, uint64_t lsn,
    uint64_t noted, const struct timespec *until)
{
	struct fs_sync *sync = find_or_add(c, fs);

	if (sync == NULL)
		return -ENOMEM;
	if (is_running(sync))
		return 0;
	join(sync);
	if (fs->state == FS_GONE)
		return 0;
	if (is_clean(fs))
		skip(sync, lsn);
	else if (wait_for(c, CHECKPOINTER_SYNCS, until))
		start(sync, lsn, noted);
	else
		return 1;
	return 0;
}

/* Where no thread was free the next round goes on, so that every file system
 * gets its turn. */
static int sync_each(struct checkpointer *c, struct fs *first, uint64_t lsn,
    const struct timespec *until)
{
	struct fs *from = c->sync_next != NULL ? c->sync_next : first, *fs;
	uint64_t journal = journal_durable_lsn(c->journal);
	uint64_t noted = lsn < journal ? lsn : journal;
	int r;

	c->sync_next = NULL;
	if (first == NULL)
		return 0;
	fs = from;
	do {
		r = sync_fs(c, fs, lsn, noted, until);
		if (r > 0)
			c->sync_next = fs;
		fs = fs->next != NULL ? fs->next : first;
	} while (r == 0 && fs != from);
	return r < 0 ? r : 0;
}

int checkpoint_sync_all(struct checkpointer *c, uint64_t *lsn,
    const struct timespec *until)
{
	struct fs *first;
	int r, err;

	/* The threads are at work, not this one. */
	checkpointer_set_work(c, &c->work, NULL);
	first = fs_first(c->cfg.repos);
	err = sync_each(c, first, *lsn, until);
	wait_for(c, 1, until);
	r = results(c, first, lsn);
	checkpointer_set_work(c, &c->work, c->cfg.state_dir);
	return err < 0 ? err : r;
}

const char *checkpoint_sync_failed(struct checkpointer *c)
{
	const struct fs_sync *sync;

	pthread_mutex_lock(&c->mutex);
	for (sync = c->syncs; sync != NULL; sync = sync->next)
		if (sync->err < 0 && sync->fs->state != FS_GONE)
			break;
	pthread_mutex_unlock(&c->mutex);
	return sync != NULL ? sync->path : NULL;
}

void checkpoint_sync_end(struct checkpointer *c)
{
	struct fs_sync *sync;

	while ((sync = c->syncs) != NULL) {
		/* A sync that hangs is told of until it comes back. */
		join(sync);
		pthread_mutex_lock(&c->mutex);
		c->syncs = sync->next;
		pthread_mutex_unlock(&c->mutex);
		free(sync);
	}
}
