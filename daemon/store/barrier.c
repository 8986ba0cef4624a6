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
 *
 * A repository whose id or row in the journal may not last yet waits here too,
 * whatever its transaction names: a cut would otherwise part it from its
 * records. The same syncfs serves for its id, and one flush of the journal for
 * the rows of all.
 *
 * Why it is safe to compare times: both are the clock that the file system
 * takes its ctimes from, the marker's or the kernel's own; SLACK covers a tick
 * (4 ms before multigrain timestamps) and a directory touched while the marker
 * was. Only a syncfs makes the time advance. With none since the start, or a
 * clock that was set back since, nothing is clean.
 *
 * What fails: a sync that fails refuses those that waited for it, and the
 * time does not advance; nothing of its file system is believed any more
 * (fs_failed.c, doubted.c). A store that can't be looked at isn't clean; nor are
 * the transactions let through that name it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/doubted.h"
#include "daemon/store/store_internal.h"

/* More flushes of single files than that cost more than a syncfs. */
#define FSYNCS_MAX 8

/* ---- clean? ---- */

/* What was written while the clock was back looks older than it is, also once
 * it is right again. */
void barrier_watch_clock(struct store *s)
{
	int64_t offset = fs_clock_offset(s->sys);
	struct fs *fs;

	pthread_mutex_lock(&s->repos.mutex);
	for (fs = s->repos.fs; fs != NULL; fs = fs->next)
		if (offset < fs->synced_offset_ns - FS_SLACK_NS / 2)
			fs->synced_ns = 0;
	pthread_mutex_unlock(&s->repos.mutex);
}

/* Of what changed on DEV before that all is durable. */
static int64_t synced_before(struct store *s, uint64_t dev)
{
	int64_t ns = fs_synced_ns(&s->repos, dev);

	return ns == 0 ? INT64_MIN : ns - FS_SLACK_NS;
}

/* objects_walk's; what nobody believes is never old. */
static int64_t limit_of(void *arg, int fd, const struct sys_stat *st)
{
	struct store *s = arg;

	return doubted_is(s, fd, st) ? INT64_MIN : synced_before(s, st->dev);
}

static int not_clean(void *arg, const struct objects_new *found)
{
	(void)arg;
	(void)found;
	return 1;
}

bool barrier_is_clean(struct store *s, struct repo *repo)
{
	const struct objects_walk walk = { .sys = s->sys,
		.limit = limit_of,
		.found = not_clean,
		.arg = s,
		.fanouts = &repo->fanouts };
	const struct object_stores *stores = odb_stores(repo->odb);

	return stores->nr > 0 && objects_walk(&walk, stores) == 0;
}

/* The id is the last of what was made with it. */
bool barrier_is_settled(struct store *s, struct repo *repo)
{
	struct sys_stat st;

	if (atomic_load(&repo->settled))
		return true;
	if (doubted_has_id(s, repo) ||
	    SYS(s->sys, lstatat, repo->refd_fd, "id", &st) < 0 ||
	    st.ctime_ns >= synced_before(s, repo->dev) ||
	    !journal_repos_last(s->journal, repo->journal_epoch))
		return false;
	atomic_store(&repo->settled, true);
	return true;
}

int barrier_settle(struct store *s, struct repo *repo)
{
	int r = heal_flush_repos(s, repo->journal_epoch);

	if (r == 0)
		atomic_store(&repo->settled, true);
	else
		repo_doom(&s->repos, repo);
	return r;
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
	int64_t offset = fs_clock_offset(s->sys), ns = 0;
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
	bool settles; /* what is to last is the repository itself */
	unsigned nth; /* doubted_id_lasts()'s */
	/* Objects that may be in memory alone; NULL: none are. */
	struct doubted *doubted;
	struct need *next;
};

struct batch {
	struct store *store;
	struct need *needs;
	struct txn *txn; /* whose stores are looked at */
	uint64_t syncs, fsyncs;
};

static int64_t limit_in_batch(void *arg, int fd, const struct sys_stat *st)
{
	return limit_of(((struct batch *)arg)->store, fd, st);
}

/* As long as HEAD or config are as new, so is the repository: a syncfs then
 * carries it all. */
static bool is_new_repo(const struct store *s, const struct repo *repo,
    int64_t limit)
{
	struct sys_stat st;

	return SYS(s->sys, lstatat, repo->fd, "config", &st) < 0 ||
	    st.ctime_ns >= limit ||
	    SYS(s->sys, lstatat, repo->fd, "HEAD", &st) < 0 ||
	    st.ctime_ns >= limit;
}

static void free_need(struct store *s, struct need *need)
{
	if (need->fd >= 0)
		SYS(s->sys, close, need->fd);
	doubted_free(s, need->doubted);
	free(need);
}

/* Where they can't be counted, they can't be synced one by one. */
static void count_packs(struct store *s, struct need *need, int fd)
{
	need->fd = SYS(s->sys, openat, fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (need->fd >= 0 &&
	    objects_count_packs(s->sys, need->fd, need->limit,
		&need->nr_files) < 0)
		need->nr_files = FSYNCS_MAX + 1;
}

static int add_need(void *arg, const struct objects_new *found)
{
	struct batch *b = arg;
	struct store *s = b->store;
	struct need *need;
	int r;

	need = calloc(1, sizeof(*need));
	if (need == NULL)
		return -ENOMEM;
	need->txn = b->txn;
	need->fd = -1;
	need->limit = found->limit;
	r = repos_fs_of(&s->repos, found->fd, &need->fs);
	if (r == 0)
		r = doubted_keep(s, found, &need->doubted);
	if (r < 0) {
		free_need(s, need);
		return r;
	}
	if (found->packs_alone && found->limit != INT64_MIN &&
	    !is_new_repo(s, b->txn->repo, found->limit))
		count_packs(s, need, found->fd);
	need->next = b->needs;
	b->needs = need;
	return 0;
}

static int add_new_repo(struct batch *b, struct txn *txn)
{
	struct need *need = calloc(1, sizeof(*need));
	int r;

	if (need == NULL)
		return -ENOMEM;
	r = doubted_write_id(b->store, txn->repo, &need->nth);
	if (r < 0) {
		free(need);
		return r;
	}
	need->txn = txn;
	need->fs = txn->repo->fs;
	need->fd = -1;
	need->settles = true;
	need->next = b->needs;
	b->needs = need;
	return 0;
}

static void refuse_for(struct txn *txn, int err, const char *why)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status == REFD_PENDING)
			txn_decidef(&txn->updates[i], txn_status_of(err),
			    "its objects, or what refd knows its repository "
			    "by, could not be made durable: %s",
			    why);
}

static void refuse(struct store *s, struct txn *txn, int err)
{
	char why[256];

	if (err != doubts_unmarked(s->doubts)) {
		refuse_for(txn, err, strerror(-err));
		return;
	}
	/* Another disk than theirs. */
	snprintf(why, sizeof(why),
	    "refd can't write 'syncs' in its state directory, and syncs "
	    "nothing before it can: %s",
	    strerror(-err));
	refuse_for(txn, err, why);
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

/* The packs of NEED, by fsyncs. */
static int sync_packs(struct batch *b, const struct need *need)
{
	struct store *s = b->store;
	struct fs *fs = need->fs;
	int64_t began_ns = SYS(s->sys, now_mono);
	bool lost = false;
	size_t nr;
	int r;

	r = fs_enter(&s->repos, fs);
	if (r < 0)
		return r;
	r = objects_sync_packs(s->sys, need->fd, need->limit, &nr, &lost);
	/* The kernel tells it once, and counts as written what is not. */
	if (lost)
		failed_fs(s, fs, r);
	fs_leave(&s->repos, fs);
	b->fsyncs += nr + 1;
	fs->fsync_took_ns =
	    (SYS(s->sys, now_mono) - began_ns) / (int64_t)(nr + 1);
	if (r != -EAGAIN)
		return r;
	b->syncs++;
	return barrier_sync(s, fs, fs->objects_fd);
}

/* After a sync. */
static void prove(struct store *s, const struct need *need)
{
	const char *why = doubted_prove(s, need->doubted);

	if (why != NULL)
		refuse_for(need->txn, -EIO, why);
}

/* All needs of one file system: by a syncfs, or each its packs. */
static void serve_fs(struct batch *b, struct fs *fs)
{
	struct store *s = b->store;
	bool whole = wants_syncfs(b, fs);
	struct need *need;
	int r = 0, err;

	if (whole) {
		r = barrier_sync(s, fs, fs->objects_fd);
		b->syncs++;
	}
	while ((need = take_need(b, fs)) != NULL) {
		if (!whole)
			r = sync_packs(b, need);
		err = r;
		if (r == 0 && need->settles)
			err = barrier_settle(s, need->txn->repo);
		if (err == 0 && need->settles)
			doubted_id_lasts(s, need->txn->repo, need->nth);
		if (err < 0)
			refuse(s, need->txn, err);
		else if (need->doubted != NULL)
			prove(s, need);
		free_need(s, need);
	}
}

/* Nothing is synced meanwhile, nor forgotten; it is told once, and once that it
 * is over. */
void barrier_tell_unmarked(struct store *s)
{
	char path[REFD_PATH_MAX];
	int err = doubts_unmarked(s->doubts);

	if (atomic_exchange(&s->told_unmarked, err) == err)
		return;
	snprintf(path, sizeof(path), "%s/syncs", s->state_dir);
	store_tell(s, STORE_UNMARKED, path, err == 0 ? "" : strerror(-err));
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

	s->barrier_round++;
	for (txn = txns->head; txn != NULL; txn = txn->next) {
		b.txn = txn;
		/* The repository's own list is the lane thread's. */
		r = objects_walk_anew(&walk, txn->repo->fd,
		    &odb_stores(txn->repo->odb)->rule);
		if (r == 0 && !atomic_load(&txn->repo->settled))
			r = add_new_repo(&b, txn);
		if (r < 0)
			refuse(s, txn, r);
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
	barrier_tell_unmarked(s);
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
