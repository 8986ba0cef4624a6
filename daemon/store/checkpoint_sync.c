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
#include "daemon/store/checkpoint_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/store/repos/repo_seen.h"
#include "daemon/store/store_internal.h"

/* A repository on FS that was published to, with a reference; NULL: none. */
static struct repo *take_touched(struct store *s, const struct fs *fs)
{
	struct repo *repo;

	pthread_mutex_lock(&s->repos.mutex);
	for (repo = s->repos.open; repo != NULL; repo = repo->next)
		if (repo->fs == fs && atomic_exchange(&repo->touched, false))
			break;
	if (repo != NULL)
		repo->refs++;
	pthread_mutex_unlock(&s->repos.mutex);
	return repo;
}

/* One that it can't be written to only has an older note. */
static void note_seen(struct store *s, const struct fs *fs, uint64_t lsn)
{
	struct repo *repo;

	while ((repo = take_touched(s, fs)) != NULL) {
		repo_seen_write(s->sys, repo->refd_fd, s->journal, lsn);
		repo_put(&s->repos, repo);
	}
}

/* ---- its thread ---- */

static void *sync_main(void *arg)
{
	struct fs_sync *sync = arg;
	struct store *s = sync->store;
	int r;

	note_seen(s, sync->fs, sync->noted);
	r = fs_sync_published(&s->repos, sync->fs);
	pthread_mutex_lock(&s->mutex);
	sync->err = r;
	if (r == 0)
		sync->lasting = sync->lsn;
	sync->work.path = NULL;
	pthread_cond_signal(&s->tick_cond);
	pthread_mutex_unlock(&s->mutex);
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
	struct store *s = sync->store;
	int r;

	sync->lsn = lsn;
	sync->noted = noted;
	fs_path(&s->repos, sync->fs, sync->path);
	if (sync->path[0] == '\0')
		strcpy(sync->path, "?");
	pthread_mutex_lock(&s->mutex);
	sync->err = 0;
	pthread_mutex_unlock(&s->mutex);
	stage_begin(s, &sync->work, sync->path);
	/* Before the store's threads begin and after they have ended, the
	 * caller is the only thread. */
	if (!s->started) {
		sync_main(sync);
		return;
	}
	r = pthread_create(&sync->thread, NULL, sync_main, sync);
	sync->has_thread = r == 0;
	if (r == 0)
		return;
	pthread_mutex_lock(&s->mutex);
	sync->err = -r;
	sync->work.path = NULL;
	pthread_mutex_unlock(&s->mutex);
}

/* ---- all of them ---- */

static struct fs_sync *find(const struct store *s, const struct fs *fs)
{
	struct fs_sync *sync = s->syncs;

	while (sync != NULL && sync->fs != fs)
		sync = sync->next;
	return sync;
}

static struct fs_sync *find_or_add(struct store *s, struct fs *fs)
{
	struct fs_sync *sync = find(s, fs);

	if (sync != NULL)
		return sync;
	sync = calloc(1, sizeof(*sync));
	if (sync == NULL)
		return NULL;
	sync->store = s;
	sync->fs = fs;
	pthread_mutex_lock(&s->mutex);
	sync->next = s->syncs;
	s->syncs = sync;
	pthread_mutex_unlock(&s->mutex);
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
static size_t nr_running(const struct store *s)
{
	const struct fs_sync *sync;
	size_t nr = 0;

	for (sync = s->syncs; sync != NULL; sync = sync->next)
		nr += sync->work.path != NULL;
	return nr;
}

bool checkpoint_syncs_ended(const struct store *s)
{
	return nr_running(s) == 0;
}

/* Waits until fewer than LIMIT syncs run. False: it is UNTIL. */
static bool wait_for(struct store *s, size_t limit,
    const struct timespec *until)
{
	bool is_late = false;

	pthread_mutex_lock(&s->mutex);
	while (nr_running(s) >= limit && !is_late)
		if (s->stopping)
			pthread_cond_wait(&s->tick_cond, &s->mutex);
		else
			is_late = pthread_cond_timedwait(&s->tick_cond,
				      &s->mutex, until) == ETIMEDOUT;
	pthread_mutex_unlock(&s->mutex);
	return !is_late;
}

static bool is_running(struct fs_sync *sync)
{
	bool runs;

	pthread_mutex_lock(&sync->store->mutex);
	runs = sync->work.path != NULL;
	pthread_mutex_unlock(&sync->store->mutex);
	return runs;
}

/* Nothing needs a sync there. */
static void skip(struct fs_sync *sync, uint64_t lsn)
{
	pthread_mutex_lock(&sync->store->mutex);
	sync->lasting = lsn;
	sync->err = 0;
	pthread_mutex_unlock(&sync->store->mutex);
}

/* Lowers *LSN for the file systems from FIRST on. */
static int results(struct store *s, const struct fs *first, uint64_t *lsn)
{
	const struct fs_sync *sync;
	const struct fs *fs;
	uint64_t lasting;
	int r = 0;

	pthread_mutex_lock(&s->mutex);
	for (fs = first; fs != NULL; fs = fs->next) {
		if (fs->gone)
			continue;
		sync = find(s, fs);
		lasting = sync != NULL ? sync->lasting : 0;
		if (lasting < *lsn)
			*lsn = lasting;
		if (sync != NULL && sync->err < 0)
			r = sync->err;
	}
	pthread_mutex_unlock(&s->mutex);
	return r;
}

/* 1: no thread was free in time. 0 or -ENOMEM. */
static int sync_fs(struct store *s, struct fs *fs, uint64_t lsn, uint64_t noted,
    const struct timespec *until)
{
	struct fs_sync *sync = find_or_add(s, fs);

	if (sync == NULL)
		return -ENOMEM;
	if (is_running(sync))
		return 0;
	join(sync);
	if (fs->gone)
		return 0;
	if (is_clean(fs))
		skip(sync, lsn);
	else if (wait_for(s, CHECKPOINT_SYNCS, until))
		start(sync, lsn, noted);
	else
		return 1;
	return 0;
}

/* Where no thread was free the next round goes on, so that every file system
 * gets its turn. */
static int sync_each(struct store *s, struct fs *first, uint64_t lsn,
    const struct timespec *until)
{
	struct fs *from = s->sync_next != NULL ? s->sync_next : first, *fs;
	uint64_t journal = journal_lasting(s->journal);
	uint64_t noted = lsn < journal ? lsn : journal;
	int r;

	s->sync_next = NULL;
	if (first == NULL)
		return 0;
	fs = from;
	do {
		r = sync_fs(s, fs, lsn, noted, until);
		if (r > 0)
			s->sync_next = fs;
		fs = fs->next != NULL ? fs->next : first;
	} while (r == 0 && fs != from);
	return r < 0 ? r : 0;
}

int checkpoint_sync_all(struct store *s, uint64_t *lsn,
    const struct timespec *until)
{
	struct fs *first;
	int r, err;

	/* The threads are at work, not this one. */
	stage_end(s, &s->checkpointing);
	first = fs_first(&s->repos);
	err = sync_each(s, first, *lsn, until);
	wait_for(s, 1, until);
	r = results(s, first, lsn);
	stage_begin(s, &s->checkpointing, s->state_dir);
	return err < 0 ? err : r;
}

const char *checkpoint_unsynced(struct store *s)
{
	const struct fs_sync *sync;

	pthread_mutex_lock(&s->mutex);
	for (sync = s->syncs; sync != NULL; sync = sync->next)
		if (sync->err < 0 && !sync->fs->gone)
			break;
	pthread_mutex_unlock(&s->mutex);
	return sync != NULL ? sync->path : NULL;
}

void checkpoint_syncs_end(struct store *s)
{
	struct fs_sync *sync;

	while ((sync = s->syncs) != NULL) {
		/* A sync that hangs is told of until it comes back. */
		join(sync);
		pthread_mutex_lock(&s->mutex);
		s->syncs = sync->next;
		pthread_mutex_unlock(&s->mutex);
		free(sync);
	}
}
