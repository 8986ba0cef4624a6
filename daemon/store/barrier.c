/*
 * The object barrier: no ref becomes durable before the objects it names.
 *
 * The happy path: every directory that objects are in (pack, the fan-outs, and
 * the same of alternates) last changed well before the last completed syncfs
 * of its file system, so all that is in them is on disk, and nothing needs
 * doing. Otherwise transactions wait here, before any lock is taken:
 *	packs alone are new		each of their files is fsynced, then
 *					objects/pack, where the last syncfs took
 *					longer than that: it waits for all that
 *					others have written there
 *	anything else, or many packs	one syncfs of the file system serves
 *					all that wait, and makes all of it old
 *
 * Why it is safe to compare times: both are the clock that the file system
 * takes its ctimes from, the marker's or the kernel's own; SLACK covers a tick
 * (4 ms before multigrain timestamps) and a directory touched while the marker
 * was. Only a syncfs makes the time advance. With none since the start, or a
 * clock that was set back since, nothing is clean.
 *
 * What fails: a sync that fails refuses those that waited for it, and the
 * time does not advance. A store that can't be looked at isn't clean; nor are
 * the transactions let through that name it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/store_internal.h"

#define SLACK_NS (100 * 1000 * 1000)
/* More flushes of single files than that cost more than a syncfs. */
#define FSYNCS_MAX 8

/* ---- clean? ---- */

/* By how much the wall clock, which is the file systems', is ahead of the
 * one that is never set. */
static int64_t clock_offset(const struct sys *sys)
{
	return SYS(sys, now_wall) - SYS(sys, now_mono);
}

/* What was written while the clock was back looks older than it is, also once
 * it is right again. */
void barrier_watch_clock(struct store *s)
{
	int64_t offset = clock_offset(s->sys);
	struct fs *fs;

	pthread_mutex_lock(&s->repos.mutex);
	for (fs = s->repos.fs; fs != NULL; fs = fs->next)
		if (offset < fs->synced_offset_ns - SLACK_NS / 2)
			fs->synced_ns = 0;
	pthread_mutex_unlock(&s->repos.mutex);
}

/* Of what changed on DEV before that all is durable. */
static int64_t limit_of(void *arg, uint64_t dev)
{
	struct store *s = arg;
	int64_t offset = clock_offset(s->sys), synced = 0;
	struct fs *fs;

	pthread_mutex_lock(&s->repos.mutex);
	for (fs = s->repos.fs; fs != NULL; fs = fs->next)
		if (fs->dev == dev && !atomic_load(&fs->failed) &&
		    fs->synced_ns > synced &&
		    offset >= fs->synced_offset_ns - SLACK_NS / 2)
			synced = fs->synced_ns;
	pthread_mutex_unlock(&s->repos.mutex);
	return synced == 0 ? INT64_MIN : synced - SLACK_NS;
}

static int not_clean(void *arg, int fd, uint64_t dev, bool packs_alone,
    int64_t limit)
{
	(void)arg;
	(void)fd;
	(void)dev;
	(void)packs_alone;
	(void)limit;
	return 1;
}

bool barrier_is_clean(struct store *s, struct repo *repo)
{
	const struct objects_walk walk = { .sys = s->sys,
		.limit = limit_of,
		.found = not_clean,
		.arg = s,
		.fanouts = &repo->fanouts };

	return objects_walk(&walk, repo->fd) == 0;
}

/* ---- sync ---- */

/* The marker's ctime, or, where there are only objects, the kernel's clock:
 * those who keep one of their own are never known to be clean. */
static int clock_of(const struct sys *sys, const struct fs *fs, int64_t *ns)
{
	struct sys_stat st;
	uint64_t type;
	int r;

	if (fs->marker_fd < 0) {
		r = SYS(sys, fs_type, fs->fd, &type);
		*ns = r == 0 && fs_type_has_our_clock(type) ?
		    SYS(sys, now_wall) :
		    0;
		return r;
	}
	r = SYS(sys, futimens_now, fs->marker_fd);
	if (r == 0)
		r = SYS(sys, fstat, fs->marker_fd, &st);
	if (r == 0)
		*ns = st.ctime_ns;
	return r;
}

static int sync_entered(struct store *s, struct fs *fs, int fd)
{
	int64_t offset = clock_offset(s->sys), ns = 0;
	int64_t began_ns, took_ns;
	int r;

	r = clock_of(s->sys, fs, &ns);
	began_ns = SYS(s->sys, now_mono);
	if (r == 0)
		r = SYS(s->sys, syncfs, fd);
	/* Before Linux 5.17 one that was shut down says yes to what it
	 * drops; but it takes nothing more. */
	if (r == 0 && fs->marker_fd >= 0)
		r = SYS(s->sys, futimens_now, fs->marker_fd);
	/* The kernel tells it once, and counts as written what is not. */
	if (r < 0) {
		failed_fs(s, fs, r);
		return r;
	}
	took_ns = SYS(s->sys, now_mono) - began_ns;
	pthread_mutex_lock(&s->repos.mutex);
	fs->syncfs_took_ns = took_ns;
	fs->synced_ns = ns;
	fs->synced_offset_ns = offset;
	pthread_mutex_unlock(&s->repos.mutex);
	return 0;
}

int barrier_sync(struct store *s, struct fs *fs, int fd)
{
	int r = fs_enter(&s->repos, fs);

	if (r < 0)
		return r;
	r = sync_entered(s, fs, fd);
	fs_leave(&s->repos, fs);
	return r;
}

/* ---- what a batch of transactions needs ---- */

/* A store that is new to one of them. */
struct need {
	struct txn *txn;
	struct fs *fs;
	int fd; /* of objects/, where packs alone are new; else -1 */
	int64_t limit;
	size_t nr_files;
	struct need *next;
};

struct batch {
	struct store *store;
	struct need *needs;
	struct txn *txn; /* whose stores are looked at */
	uint64_t syncs, fsyncs;
};

static int64_t limit_in_batch(void *arg, uint64_t dev)
{
	return limit_of(((struct batch *)arg)->store, dev);
}

/* As long as HEAD or config are as new, so is the repository: a syncfs then
 * carries it all. */
static bool is_new_repo(const struct store *s, const struct repo *repo,
    int64_t limit)
{
	struct sys_stat st;

	return SYS(s->sys, statat, repo->fd, "config", &st) < 0 ||
	    st.ctime_ns >= limit ||
	    SYS(s->sys, statat, repo->fd, "HEAD", &st) < 0 ||
	    st.ctime_ns >= limit;
}

static int add_need(void *arg, int fd, uint64_t dev, bool packs_alone,
    int64_t limit)
{
	struct batch *b = arg;
	struct store *s = b->store;
	struct need *need;
	int r;

	(void)dev;
	need = calloc(1, sizeof(*need));
	if (need == NULL)
		return -ENOMEM;
	need->txn = b->txn;
	need->fd = -1;
	need->limit = limit;
	r = repos_fs_of(&s->repos, fd, &need->fs);
	if (r < 0) {
		free(need);
		return r;
	}
	if (packs_alone && limit != INT64_MIN &&
	    !is_new_repo(s, b->txn->repo, limit))
		need->fd =
		    SYS(s->sys, openat, fd, ".", O_RDONLY | O_DIRECTORY, 0);
	/* Where they can't be counted, they can't be synced one by one. */
	if (need->fd >= 0 &&
	    objects_sync_packs(s->sys, need->fd, limit, true, &need->nr_files) <
		0)
		need->nr_files = FSYNCS_MAX + 1;
	need->next = b->needs;
	b->needs = need;
	return 0;
}

static void refuse(struct txn *txn, int err)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status == REFD_PENDING)
			txn_decidef(&txn->updates[i], txn_status_of(err),
			    "its objects could not be made durable: %s",
			    strerror(-err));
}

/* ---- and gets ---- */

static bool wants_syncfs(const struct batch *b, struct fs *fs)
{
	int64_t syncfs_ns;
	const struct need *need;
	size_t files = 0;

	for (need = b->needs; need != NULL; need = need->next) {
		if (need->fs != fs)
			continue;
		if (need->fd < 0)
			return true;
		files += need->nr_files + 1;
	}
	pthread_mutex_lock(&b->store->repos.mutex);
	syncfs_ns = fs->syncfs_took_ns;
	pthread_mutex_unlock(&b->store->repos.mutex);
	if (files <= FSYNCS_MAX &&
	    (int64_t)files * fs->fsync_took_ns <= syncfs_ns)
		return false;
	/* So that it is found out one day that they have become cheap. */
	fs->fsync_took_ns -= fs->fsync_took_ns / 8;
	return true;
}

static struct need *take_need(struct batch *b, const struct fs *fs)
{
	struct need **at = &b->needs, *need;

	while ((need = *at) != NULL && need->fs != fs)
		at = &need->next;
	if (need != NULL)
		*at = need->next;
	return need;
}

/* All needs of one file system: by a syncfs, or each its packs. */
static void serve_fs(struct batch *b, struct fs *fs)
{
	struct store *s = b->store;
	bool whole = wants_syncfs(b, fs);
	struct need *need;
	int64_t began_ns;
	size_t nr;
	int r = 0;

	if (whole) {
		r = barrier_sync(s, fs, fs->objects_fd);
		b->syncs++;
	}
	while ((need = take_need(b, fs)) != NULL) {
		if (!whole) {
			began_ns = SYS(s->sys, now_mono);
			r = objects_sync_packs(s->sys, need->fd, need->limit,
			    false, &nr);
			b->fsyncs += nr + 1;
			fs->fsync_took_ns = (SYS(s->sys, now_mono) - began_ns) /
			    (int64_t)(nr + 1);
			if (r == -EAGAIN) {
				r = barrier_sync(s, fs, fs->objects_fd);
				b->syncs++;
			}
		}
		if (r < 0)
			refuse(need->txn, r);
		if (need->fd >= 0)
			SYS(s->sys, close, need->fd);
		free(need);
	}
}

static void serve(struct store *s, struct txn_fifo *txns)
{
	struct batch b = { .store = s };
	const struct objects_walk walk = { .sys = s->sys,
		.limit = limit_in_batch,
		.found = add_need,
		.arg = &b };
	struct txn *txn;
	uint64_t nr = 0;
	int64_t now_ns;
	int r;

	for (txn = txns->head; txn != NULL; txn = txn->next) {
		b.txn = txn;
		r = objects_walk(&walk, txn->repo->fd);
		if (r < 0)
			refuse(txn, r);
	}
	while (b.needs != NULL)
		serve_fs(&b, b.needs->fs);
	pthread_mutex_lock(&s->repos.mutex);
	for (txn = txns->head; txn != NULL; txn = txn->next, nr++)
		txn->repo->waiting_barrier--;
	pthread_mutex_unlock(&s->repos.mutex);
	pthread_mutex_lock(&s->mutex);
	s->stats.barriers += nr;
	s->stats.barrier_syncs += b.syncs;
	s->stats.barrier_fsyncs += b.fsyncs;
	pthread_mutex_unlock(&s->mutex);
	now_ns = SYS(s->sys, now_mono);
	for (txn = txns->head; txn != NULL; txn = txn->next)
		txn->times.barrier_ns += now_ns;
	store_admitted(s, txns);
}

void *barrier_main(void *arg)
{
	struct store *s = arg;
	struct txn_fifo txns = { .head = NULL };

	pthread_mutex_lock(&s->mutex);
	for (;;) {
		txn_fifo_move(&txns, &s->to_barrier);
		if (txns.head == NULL && s->stopping)
			break;
		if (txns.head == NULL) {
			pthread_cond_wait(&s->barrier_cond, &s->mutex);
			continue;
		}
		pthread_mutex_unlock(&s->mutex);
		serve(s, &txns);
		pthread_mutex_lock(&s->mutex);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}
