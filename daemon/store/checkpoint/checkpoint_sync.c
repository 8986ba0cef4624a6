/*
 * The syncs of a checkpoint (checkpoint.c), on one worker each.
 *
 * The happy path: a disk can hang, so each file system that was published to is
 * synced by a worker of its own. The checkpointer waits for all syncs. Then all
 * refs of records up to its LSN are durable.
 *
 * Failures: if a file system hangs, all other file systems are synced in every
 * round. But no record is forgotten that the hanging file system may still
 * need, because records are forgotten up to an LSN. A failed sync is reported,
 * and repeated in the next round.
 */
#include "daemon/store/checkpoint/checkpointer_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/repos/repo_checkpoint.h"

/* A repository on FS with new published refs, with a reference; NULL: none. */
static struct repo *take_touched(struct repos *repos, const struct fs *fs)
{
	struct repo *repo;

	mutex_lock(&repos->mutex);
	for (repo = repos->open; repo != NULL; repo = repo->next)
		if (repo->fs == fs && atomic_exchange(&repo->touched, false))
			break;
	if (repo != NULL)
		repo->refs++;
	mutex_unlock(&repos->mutex);
	return repo;
}

/* If a repository can't be written, its older note stays. */
static void note_checkpoint(struct checkpointer *c, const struct fs *fs)
{
	struct repo *repo;

	while ((repo = take_touched(c->cfg->repos, fs)) != NULL) {
		repo_checkpoint_write(c->cfg->sys, repo->refd_fd, c->journal);
		repo_put(c->cfg->repos, repo);
	}
}

/* ---- a sync ---- */

static void run(struct fs_sync *sync)
{
	struct checkpointer *c = sync->owner;
	struct checkpoint_tidy tidy;
	int r;

	checkpoint_tidy_begin(&tidy, c, sync->fs);
	note_checkpoint(c, sync->fs);
	r = fs_sync_published(c->cfg->repos, sync->fs);
	checkpoint_tidy_end(&tidy, r == 0);
	if (r == 0)
		packer_synced(c->cfg->packer, sync->fs);
	mutex_lock(&c->mutex);
	sync->err = r;
	if (r == 0)
		sync->lasting = sync->lsn;
	sync->work.path = NULL;
	pthread_cond_signal(&c->cond);
	mutex_unlock(&c->mutex);
}

static struct fs_sync *find_queued(const struct checkpointer *c)
{
	struct fs_sync *sync = c->syncs;

	while (sync != NULL && !sync->is_queued)
		sync = sync->next;
	return sync;
}

bool checkpoint_sync_next(void *arg)
{
	struct checkpointer *c = arg;
	struct fs_sync *sync;

	mutex_lock(&c->mutex);
	sync = find_queued(c);
	if (sync != NULL) {
		sync->is_queued = false;
		sync->work = (struct stage_work){ sync->path,
			SYS(c->cfg->sys, now_mono) };
	}
	if (find_queued(c) != NULL)
		workers_wake(c->cfg->workers, &c->source);
	mutex_unlock(&c->mutex);
	if (sync != NULL)
		run(sync);
	return sync != NULL;
}

/* Only after the last sync of the file system has ended. */
static void start(struct fs_sync *sync, uint64_t lsn)
{
	struct checkpointer *c = sync->owner;

	sync->lsn = lsn;
	fs_path(c->cfg->repos, sync->fs, sync->path);
	if (sync->path[0] == '\0')
		strcpy(sync->path, "?");
	mutex_lock(&c->mutex);
	sync->err = 0;
	sync->is_queued = true;
	if (c->is_started)
		workers_wake(c->cfg->workers, &c->source);
	mutex_unlock(&c->mutex);
	/* checkpointer_once() without the thread: the caller is the only thread
	 * of the store, so the caller syncs. */
	if (!c->is_started)
		checkpoint_sync_next(c);
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
	mutex_lock(&c->mutex);
	sync->next = c->syncs;
	c->syncs = sync;
	mutex_unlock(&c->mutex);
	return sync;
}

/* True if all published refs there are durable, and no sync is running. */
static bool is_clean(struct fs *fs)
{
	bool is_clean;

	if (mutex_trylock(&fs->checkpoint) != 0)
		return false;
	is_clean = !atomic_load(&fs->touched) && !atomic_load(&fs->promised);
	mutex_unlock(&fs->checkpoint);
	return is_clean;
}

/* Or waits for a worker. Under MUTEX. */
static bool is_running(const struct fs_sync *sync)
{
	return sync->is_queued || sync->work.path != NULL;
}

/* Under MUTEX. */
static size_t nr_running(const struct checkpointer *c)
{
	const struct fs_sync *sync;
	size_t nr = 0;

	for (sync = c->syncs; sync != NULL; sync = sync->next)
		nr += is_running(sync);
	return nr;
}

bool checkpoint_sync_has_ended(const struct checkpointer *c)
{
	return nr_running(c) == 0;
}

/* Waits until fewer than LIMIT syncs run. False: the time UNTIL was reached. */
static bool wait_for(struct checkpointer *c, size_t limit,
    const struct timespec *until)
{
	bool is_late = false;

	mutex_lock(&c->mutex);
	while (nr_running(c) >= limit && !is_late)
		if (c->stopping)
			mutex_wait(&c->cond, &c->mutex);
		else
			is_late = mutex_wait_until(&c->cond, &c->mutex,
				      until) == ETIMEDOUT;
	mutex_unlock(&c->mutex);
	return !is_late;
}

/* Nothing needs a sync there. */
static void skip(struct fs_sync *sync, uint64_t lsn)
{
	mutex_lock(&sync->owner->mutex);
	sync->lasting = lsn;
	sync->err = 0;
	mutex_unlock(&sync->owner->mutex);
}

/* Lowers *LSN for the file systems from FIRST on. */
static int results(struct checkpointer *c, const struct fs *first,
    uint64_t *lsn)
{
	const struct fs_sync *sync;
	const struct fs *fs;
	uint64_t lasting;
	int r = 0;

	mutex_lock(&c->mutex);
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
	mutex_unlock(&c->mutex);
	return r;
}

/* 1: too many syncs ran until UNTIL. 0 or -ENOMEM. */
static int sync_fs(struct checkpointer *c, struct fs *fs, uint64_t lsn,
    const struct timespec *until)
{
	struct fs_sync *sync = find_or_add(c, fs);
	bool runs;

	if (sync == NULL)
		return -ENOMEM;
	mutex_lock(&c->mutex);
	runs = is_running(sync);
	mutex_unlock(&c->mutex);
	if (runs)
		return 0;
	if (fs->state == FS_GONE)
		return 0;
	if (is_clean(fs))
		skip(sync, lsn);
	else if (wait_for(c, CHECKPOINTER_SYNCS, until))
		start(sync, lsn);
	else
		return 1;
	return 0;
}

/* If there are too many syncs for a round, the next round continues after the
 * last file system, so that every file system gets a turn. */
static int sync_each(struct checkpointer *c, struct fs *first, uint64_t lsn,
    const struct timespec *until)
{
	struct fs *from = c->sync_next != NULL ? c->sync_next : first, *fs;
	int r;

	c->sync_next = NULL;
	if (first == NULL)
		return 0;
	fs = from;
	do {
		r = sync_fs(c, fs, lsn, until);
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

	/* The workers are at work and not this thread, so this thread reports
	 * no work. */
	checkpointer_set_work(c, &c->work, NULL);
	first = fs_first(c->cfg->repos);
	err = sync_each(c, first, *lsn, until);
	wait_for(c, 1, until);
	r = results(c, first, lsn);
	checkpointer_set_work(c, &c->work, c->cfg->state_dir);
	return err < 0 ? err : r;
}

const char *checkpoint_sync_failed(struct checkpointer *c)
{
	const struct fs_sync *sync;

	mutex_lock(&c->mutex);
	for (sync = c->syncs; sync != NULL; sync = sync->next)
		if (sync->err < 0 && sync->fs->state != FS_GONE)
			break;
	mutex_unlock(&c->mutex);
	return sync != NULL ? sync->path : NULL;
}

void checkpoint_sync_end(struct checkpointer *c)
{
	struct fs_sync *sync;

	/* A hanging sync stays in the reports until it ends. */
	wait_for(c, 1, NULL);
	while ((sync = c->syncs) != NULL) {
		mutex_lock(&c->mutex);
		c->syncs = sync->next;
		mutex_unlock(&c->mutex);
		free(sync);
	}
}
