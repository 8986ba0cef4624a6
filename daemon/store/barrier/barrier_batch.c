/*
 * Finds the unsynced objects and new repositories of a batch of transactions,
 * and makes both durable (barrier.c).
 *
 * The happy path: the object stores of each transaction are checked. One sync
 * serves all transactions of a file system, so each file system with new
 * objects is synced once, or the new packs are. Then all transactions come
 * back.
 *
 * Failures: a failed sync refuses all transactions that needed the sync. A
 * transaction given up meanwhile has come back already, so the batch no longer
 * refers to the transaction.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/fs_type.h"
#include "daemon/base/probe.h"
#include "daemon/store/barrier/barrier_internal.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_moved.h"
#include "daemon/store/sync_failures/suspect_store.h"

/* More flushes of single files would cost more than a syncfs. */
#define FSYNCS_MAX 8

/* ---- the needs of a batch of transactions ---- */

/* An object store with new objects for a transaction. */
struct need {
	struct barrier_waiter *waiter;
	struct fs *fs;
	int fd; /* of objects/, if only packs are new; else -1 */
	int64_t limit;
	size_t nr_files;
	bool settles; /* the repository itself must become durable */
	unsigned nth; /* for suspect_store_dir_lasts() */
	/* Objects that may be in memory only; NULL: no such objects. */
	struct suspect_store *suspect;
	struct need *next;
};

static int64_t limit_in_batch(void *arg, int fd, const struct sys_stat *st)
{
	return barrier_limit(((struct barrier_batch *)arg)->cfg, fd, st);
}

/* Is REPO new, so that HEAD or config are not known to be durable either
 * (LIMIT)? The other files of a new repository must become durable as well, so
 * only a syncfs will do. */
static bool is_new_repo(const struct store_parts *cfg, const struct repo *repo,
    int64_t limit)
{
	struct sys_stat st;

	return SYS(cfg->sys, lstatat, repo->fd, "config", &st) < 0 ||
	    st.ctime_ns >= limit ||
	    SYS(cfg->sys, lstatat, repo->fd, "HEAD", &st) < 0 ||
	    st.ctime_ns >= limit;
}

static void free_need(const struct store_parts *cfg, struct need *need)
{
	if (need->fd >= 0)
		SYS(cfg->sys, close, need->fd);
	suspect_store_free(cfg->sync_failures, need->suspect);
	free(need);
}

/* Packs that cannot be counted cannot be synced separately. */
static void count_packs(const struct store_parts *cfg, struct need *need,
    int fd)
{
	need->fd = SYS(cfg->sys, openat, fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (need->fd >= 0 &&
	    objects_count_packs(cfg->sys, need->fd, need->limit,
		&need->nr_files) < 0)
		need->nr_files = FSYNCS_MAX + 1;
}

static int add_need(void *arg, const struct objects_new *found)
{
	struct barrier_batch *b = arg;
	const struct store_parts *cfg = b->cfg;
	struct need *need;
	int r;

	need = calloc(1, sizeof(*need));
	if (need == NULL)
		return -ENOMEM;
	need->waiter = b->waiter;
	need->fd = -1;
	need->limit = found->limit;
	r = fs_of(cfg->repos, found->fd, &need->fs);
	if (r == 0)
		r = suspect_store_keep(cfg->sync_failures, found,
		    b->waiter->repo->object_format, &need->suspect);
	if (r < 0) {
		free_need(cfg, need);
		return r;
	}
	if (found->packs_alone && found->limit != INT64_MIN &&
	    !is_new_repo(cfg, b->waiter->repo, found->limit))
		count_packs(cfg, need, found->fd);
	need->next = b->needs;
	b->needs = need;
	return 0;
}

/* Somebody may have exchanged the file since the opening, and the file that is
 * written here is believed. So it gets the id of the opening. */
static int write_id_again(const struct store_parts *cfg,
    const struct repo *repo)
{
	struct repo_id id = { .whose = OWN_FILE_CLOSED };

	memcpy(id.uuid, repo->uuid, sizeof(id.uuid));
	memcpy(id.journal, journal_uuid(cfg->journal), sizeof(id.journal));
	snprintf(id.path, sizeof(id.path), "%s", repo->path);
	return repo_id_write(cfg->sys, repo->refd_fd, &id, true);
}

/* refd/id of REPO may be in memory only. refd does not read the file from the
 * disk, but writes the file again, so that the next sync covers the file. */
static int renew_id(const struct store_parts *cfg, const struct repo *repo,
    unsigned *nth)
{
	int64_t since_ns = suspect_store_dir_since(cfg->sync_failures,
	    repo->refd_fd, repo->fs->mount, nth);
	struct sys_stat st;
	int r;

	if (since_ns == SYNC_FAILURES_NONE)
		return 0;
	r = SYS(cfg->sys, lstatat, repo->refd_fd, "id", &st);
	if (r < 0 || st.ctime_ns < since_ns - FS_SLACK_NS)
		return r;
	return write_id_again(cfg, repo);
}

/* The file system of the repository itself needs a sync. */
static int add_repo(struct barrier_batch *b, bool settles)
{
	struct need *need = calloc(1, sizeof(*need));
	int r = 0;

	if (need == NULL)
		return -ENOMEM;
	if (settles)
		r = renew_id(b->cfg, b->waiter->repo, &need->nth);
	if (r < 0) {
		free(need);
		return r;
	}
	need->waiter = b->waiter;
	need->fs = b->waiter->repo->fs;
	need->fd = -1;
	need->settles = settles;
	need->next = b->needs;
	b->needs = need;
	return 0;
}

/* The first reason counts. */
static void refuse_for(struct barrier_waiter *w, int err, const char *why)
{
	if (w->err != 0)
		return;
	w->err = err;
	w->why = why != NULL ? repo_why("%s", why) : NULL;
}

static void refuse(const struct store_parts *cfg, struct barrier_waiter *w,
    int err)
{
	char why[256];

	if (err != sync_failures_unmarked(cfg->sync_failures)) {
		refuse_for(w, err, strerror(-err));
		return;
	}
	/* The failed disk is not the disk of the transactions, so the reason
	 * must name the place. */
	snprintf(why, sizeof(why),
	    "refd can't write 'syncs' in its state directory, and syncs "
	    "nothing before it can: %s",
	    strerror(-err));
	refuse_for(w, err, why);
}

static void decide_refused(struct txn *txn, const struct barrier_waiter *w)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status == REFD_PENDING)
			txn_decidef(&txn->updates[i], txn_status_of(w->err),
			    "its objects, or what refd knows its repository "
			    "by, could not be made durable: %s",
			    w->why != NULL ? w->why : "out of memory");
}

/* ---- serving the needs ---- */

static bool wants_syncfs(const struct barrier_batch *b, struct fs *fs)
{
	const struct need *need;
	size_t files = 0;
	bool wants_it;

	for (need = b->needs; need != NULL; need = need->next) {
		if (need->fs != fs)
			continue;
		if (need->fd < 0)
			return true;
		files += need->nr_files + 1;
	}
	mutex_lock(&b->cfg->repos->mutex);
	wants_it = files > FSYNCS_MAX ||
	    (int64_t)files * fs->fsync_took_ns > fs->syncfs_took_ns;
	/* The estimate decays, so that cheap fsyncs are discovered again. */
	if (wants_it)
		fs->fsync_took_ns -= fs->fsync_took_ns / 8;
	mutex_unlock(&b->cfg->repos->mutex);
	return wants_it;
}

static struct need *take_need(struct barrier_batch *b, const struct fs *fs)
{
	struct need **at = &b->needs, *need;

	while ((need = *at) != NULL && need->fs != fs)
		at = &need->next;
	if (need != NULL)
		*at = need->next;
	return need;
}

/* Locked, since a different batch may sync the same file system, through an
 * alternate. */
static int sync_whole(struct barrier_batch *b, struct fs *fs)
{
	int r;

	mutex_lock(&fs->objects_sync);
	r = fs_sync(b->cfg->repos, fs, fs->objects_fd);
	mutex_unlock(&fs->objects_sync);
	b->syncs++;
	return r;
}

/* Syncs the packs of NEED, by fsyncs. */
static int sync_packs(struct barrier_batch *b, const struct need *need)
{
	const struct store_parts *cfg = b->cfg;
	struct fs *fs = need->fs;
	int64_t began_ns, took_ns;
	bool lost = false;
	size_t nr = 0;
	int r;

	mutex_lock(&fs->objects_sync);
	began_ns = SYS(cfg->sys, now_mono);
	r = fs_enter(cfg->repos, fs);
	if (r == 0) {
		r = objects_sync_packs(cfg->sys, need->fd, need->limit, &nr,
		    &lost);
		/* The kernel reports a lost write only once, and then counts
		 * the data as written, so the failure is noted now. */
		if (lost)
			fs_fail(cfg->repos, fs, r);
		fs_leave(cfg->repos, fs);
	}
	mutex_unlock(&fs->objects_sync);
	if (r < 0 && r != -EAGAIN)
		return r;
	b->fsyncs += nr + 1;
	took_ns = (SYS(cfg->sys, now_mono) - began_ns) / (int64_t)(nr + 1);
	mutex_lock(&cfg->repos->mutex);
	fs->fsync_took_ns = took_ns;
	mutex_unlock(&cfg->repos->mutex);
	return r == -EAGAIN ? sync_whole(b, fs) : r;
}

static void object_lost(void *arg, const char *path, const char *why)
{
	const struct store_parts *cfg = ((struct barrier_batch *)arg)->cfg;

	if (cfg->config->event != NULL)
		cfg->config->event(STORE_OBJECT_LOST, path, why);
}

/* After a sync. */
static void read_back(struct barrier_batch *b, const struct need *need)
{
	const struct suspect_store_report report = { object_lost, b };
	char *why;

	if (suspect_store_read_back(b->cfg->sync_failures, need->suspect,
		&report, &why) < 0)
		refuse_for(need->waiter, -EIO, why);
	free(why);
}

/* Serves all needs of a file system, either by one syncfs or by fsyncs of the
 * packs of each need. */
static void serve_fs(struct barrier_batch *b, struct fs *fs)
{
	const struct store_parts *cfg = b->cfg;
	bool whole = wants_syncfs(b, fs);
	struct need *need;
	int r = 0, err;

	if (whole)
		r = sync_whole(b, fs);
	while ((need = take_need(b, fs)) != NULL) {
		if (!whole)
			r = sync_packs(b, need);
		err = r;
		if (r == 0 && need->settles)
			err = barrier_settle(cfg, need->waiter->repo);
		if (err == 0 && need->settles)
			suspect_store_dir_lasts(cfg->sync_failures,
			    need->waiter->repo->refd_fd, fs->mount, need->nth);
		if (err < 0)
			refuse(cfg, need->waiter, err);
		else if (need->suspect != NULL)
			read_back(b, need);
		free_need(cfg, need);
	}
}

/* ---- a batch ---- */

/* Puts B's transactions into TXNS, except those given up. */
static void end_batch(struct barrier_batch *b, struct txn_fifo *txns)
{
	const struct store_parts *cfg = b->cfg;
	int64_t now_ns = SYS(cfg->sys, now_mono);
	struct barrier_waiter *w;
	struct txn *txn;

	for (w = b->waiters; w < b->waiters + b->nr_waiters; w++) {
		mutex_lock(&b->barriers->mutex);
		txn = w->txn;
		if (txn != NULL)
			txn->waiter = NULL;
		mutex_unlock(&b->barriers->mutex);
		repo_put(cfg->repos, w->repo);
		if (txn != NULL) {
			if (w->err != 0)
				decide_refused(txn, w);
			repo_moved_refuse(cfg->repos, txn);
			txn->times.barrier_ns += now_ns;
			PROBE_BARRIER_END(&txn->req.txid, txn->repo_id,
			    txn->times.barrier_ns, w->err);
			txn_fifo_put(txns, txn);
		}
		free(w->why);
	}
}

void barrier_serve(struct barrier_batch *b, struct txn_fifo *done)
{
	const struct store_parts *cfg = b->cfg;
	struct objects_walk walk = { .sys = cfg->sys,
		.limit = limit_in_batch,
		.found = add_need,
		.arg = b };
	struct barrier_waiter *w;
	bool settles;
	int r;

	suspect_store_next_round(cfg->sync_failures);
	for (w = b->waiters; w < b->waiters + b->nr_waiters; w++) {
		b->waiter = w;
		walk.first = w->fanout;
		/* The list in w->repo belongs to the admission, so the walk
		 * reads a new list. */
		r = objects_walk_anew(&walk, w->repo->fd,
		    &odb_stores(w->repo->odb)->rule);
		settles = !atomic_load(&w->repo->settled);
		if (r == 0 && (settles || barrier_is_shallow_new(cfg, w->repo)))
			r = add_repo(b, settles);
		if (r < 0)
			refuse(cfg, w, r);
	}
	while (b->needs != NULL)
		serve_fs(b, b->needs->fs);
	end_batch(b, done);
	fs_sync_tell_unmarked(cfg->repos);
}
