/*
 * The checkpoint: what was published becomes durable, so that its records
 * need no replay.
 *
 * The happy path, once an interval and never in a commit's way:
 *	floor	the highest LSN below which every window has ended and no
 *		record is left to the next start
 *	note	in each repository published to, how far the journal has come
 *	sync	every file system published to: syncfs on a descriptor that was
 *		open before the first rename there, then an fsync of a small
 *		file, since older kernels let syncfs succeed on a file system
 *		that was shut down or went read-only
 *	forget	in the journal, with the next commit, or now when none comes
 *	sqlite	its own checkpoint, and the length of its WAL
 *
 * In the weaker modes the same makes last what was answered before: of mode
 * periodic every durability.interval, and then the journal's own rows are
 * flushed too. Of mode none nothing has to: its records are kept until there is
 * a good deal of them, so that a start knows what a cut has broken.
 *
 * Never file by file: by then the ref may be another's file or a line of
 * packed-refs; syncfs makes durable whatever stands for it now.
 *
 * What fails: a file system that fails to sync is not believed again; its
 * records are kept aside until they are redone (fs_failed.c), and until they
 * are aside nothing is forgotten. A failed sync of SQLite's brings the journal
 * back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/store/repos/repo_seen.h"
#include "daemon/store/store_internal.h"

#define WAL_MAX_BYTES (16 * 1024 * 1024)
#define WINDOW_NS     (2 * 1000 * 1000) /* one may take so long to end */

static int sync_marked(struct store *s, struct fs *fs)
{
	static const char byte[] = "refd\n";
	ssize_t n;
	int r;

	r = barrier_sync(s, fs, fs->fd);
	if (r < 0)
		return r;
	n = SYS(s->sys, pwrite, fs->marker_fd, byte, sizeof(byte) - 1, 0);
	/* Its owner may have made it empty, and have no room left. */
	if (n == -ENOSPC || n == -EDQUOT)
		r = SYS(s->sys, futimens_now, fs->marker_fd);
	else
		r = n == (ssize_t)sizeof(byte) - 1 ? 0 : -EIO;
	if (r == 0)
		r = SYS(s->sys, fsync, fs->marker_fd);
	if (r < 0)
		failed_fs(s, fs, r);
	return r;
}

/* Two threads come here, and each forgets records for it: one that finds
 * nothing to do must not be back before the other's sync is. */
int checkpoint_sync_fs(void *store, struct fs *fs)
{
	struct store *s = store;
	bool promised;
	int r = 0;

	pthread_mutex_lock(&fs->checkpoint);
	promised = atomic_exchange(&fs->promised, false);
	if (atomic_exchange(&fs->touched, false)) {
		r = fs_enter(&s->repos, fs);
		if (r == 0) {
			r = sync_marked(s, fs);
			fs_leave(&s->repos, fs);
		}
	}
	if (r < 0) {
		atomic_store(&fs->touched, true);
		if (promised)
			atomic_store(&fs->promised, true);
	}
	pthread_mutex_unlock(&fs->checkpoint);
	return r;
}

/* The list only grows at its head; what is in it stays. */
static struct fs *all_fs(struct store *s)
{
	struct fs *fs;

	pthread_mutex_lock(&s->repos.mutex);
	fs = s->repos.fs;
	pthread_mutex_unlock(&s->repos.mutex);
	return fs;
}

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

static int sync_all(struct store *s, uint64_t lsn)
{
	uint64_t lasting = journal_lasting(s->journal);
	char path[REFD_PATH_MAX];
	struct fs *fs;
	int r = 0, err;

	s->unsynced = NULL;
	for (fs = all_fs(s); fs != NULL; fs = fs->next) {
		if (fs->gone)
			continue;
		/* The kernel knows it without asking the disk. */
		if (SYS(s->sys, fd_path, fs->fd, path, sizeof(path)) < 0)
			strcpy(path, "?");
		stage_begin(s, &s->checkpointing, path);
		note_seen(s, fs, lsn < lasting ? lsn : lasting);
		err = checkpoint_sync_fs(s, fs);
		if (err == 0)
			continue;
		r = err;
		s->unsynced = fs;
	}
	stage_begin(s, &s->checkpointing, s->state_dir);
	return r;
}

/* Its locks stand, and tell the next start nothing without the record. */
void checkpoint_keep(void *store, uint64_t lsn)
{
	struct store *s = store;

	pthread_mutex_lock(&s->mutex);
	if (s->kept == 0 || lsn < s->kept)
		s->kept = lsn;
	pthread_mutex_unlock(&s->mutex);
}

/* ---- the checkpoint ---- */

/* The highest LSN of which nothing waits for more than its window; under
 * MUTEX. */
static uint64_t highest_not_kept(struct store *s)
{
	uint64_t lsn = journal_last_lsn(s->journal);

	if (s->kept != 0 && s->kept - 1 < lsn)
		lsn = s->kept - 1;
	return lsn;
}

/* The highest LSN that may be forgotten once everything is synced. */
static uint64_t highest_ended(struct store *s)
{
	uint64_t lsn;
	size_t i;

	pthread_mutex_lock(&s->mutex);
	lsn = highest_not_kept(s);
	for (i = 0; i < STORE_COMMITTERS; i++)
		if (s->floors[i] != 0 && s->floors[i] - 1 < lsn)
			lsn = s->floors[i] - 1;
	pthread_mutex_unlock(&s->mutex);
	return lsn;
}

/* Nobody waits for it, and the disk is left alone. */
static bool may_wait(struct store *s)
{
	struct journal_stats stats;
	struct fs *fs;

	if (rights_weakest(&s->rights) != REFD_DURABILITY_NONE)
		return false;
	for (fs = all_fs(s); fs != NULL; fs = fs->next)
		if (atomic_load(&fs->promised))
			return false;
	pthread_rwlock_rdlock(&s->journal_lock);
	journal_stats(s->journal, &stats);
	pthread_rwlock_unlock(&s->journal_lock);
	return stats.wal_bytes < WAL_MAX_BYTES;
}

/* Brought back where it failed; then not all that was committed is there any
 * more, and the next time tells. */
static int flush_journal(struct store *s)
{
	unsigned epoch;
	int r;

	pthread_rwlock_rdlock(&s->journal_lock);
	epoch = s->journal_epoch;
	r = heal_flush(s);
	pthread_rwlock_unlock(&s->journal_lock);
	if (r != JOURNAL_UNKNOWN)
		return r;
	heal_journal(s, epoch);
	return -EIO;
}

static void count(struct store *s, int r, int64_t began_ns)
{
	int64_t now_ns = SYS(s->sys, now_mono);
	struct sys_stat st;
	bool has_size =
	    SYS(s->sys, lstatat, s->state_fd, JOURNAL_NAME, &st) == 0;

	pthread_mutex_lock(&s->mutex);
	s->stats.checkpoints += r == 0;
	s->stats.checkpoint_failures += r != 0;
	s->stats.checkpoint_took_ns = now_ns - began_ns;
	if (r == 0)
		s->stats.checkpoint_ns = now_ns;
	if (has_size)
		s->stats.journal_bytes = (uint64_t)st.size;
	pthread_mutex_unlock(&s->mutex);
}

int checkpoint_once(struct store *s, bool now)
{
	int64_t began_ns = SYS(s->sys, now_mono);
	bool unflushed;
	unsigned epoch;
	uint64_t lsn;
	int r = 0;

	if (store_fatal(s) != NULL)
		return -EIO;
	failed_park(s);
	lsn = highest_ended(s);
	/* First the rows: what a repository has seen of them is not to be more
	 * than a cut leaves. Those that are not forgotten have to last too. */
	unflushed = journal_is_unflushed(s->journal);
	if (unflushed)
		r = flush_journal(s);
	if (r == 0 && (unflushed || lsn > journal_forgotten(s->journal)))
		r = sync_all(s, lsn);
	count(s, r, began_ns);
	pthread_rwlock_rdlock(&s->journal_lock);
	epoch = s->journal_epoch;
	if (r == 0 && (now || lsn > journal_forgotten(s->journal)))
		r = journal_forget(s->journal, lsn, now);
	if (r <= 0 && !now &&
	    journal_checkpoint(s->journal, WAL_MAX_BYTES) == JOURNAL_UNKNOWN)
		r = JOURNAL_UNKNOWN;
	pthread_rwlock_unlock(&s->journal_lock);
	if (r != JOURNAL_UNKNOWN)
		return r;
	r = heal_journal(s, epoch);
	/* It may have been this that got lost. */
	if (r == 0 && now)
		r = journal_forget(s->journal, lsn, true);
	return r > 0 ? -EIO : r;
}

/* ---- those that were asked for ---- */

static void decide(struct store *s, struct store_checkpoint *cp, int r)
{
	char path[REFD_PATH_MAX];

	cp->status = REFD_IO;
	if (r < 0 && s->unsynced != NULL &&
	    SYS(s->sys, fd_path, s->unsynced->fd, path, sizeof(path)) == 0)
		cp->why = repo_why("can't sync the file system of '%s': %s",
		    path, strerror(-r));
	else if (r < 0)
		cp->why = repo_why("%s", strerror(-r));
	else
		cp->why = repo_why(
		    "updates that were answered await recovery: see the "
		    "daemon's log, and what is parked in 'refd status'");
}

/* Answers those that are done, or can't be. What only waits for a window to
 * end stays. */
static void answer_asked(struct store *s, int r)
{
	struct store_checkpoint *asked, *cp;
	struct store_stats stats = { 0 };
	uint64_t forgotten, possible;

	pthread_mutex_lock(&s->mutex);
	asked = s->to_checkpoint.head;
	s->to_checkpoint.head = NULL;
	forgotten = journal_forgotten(s->journal);
	possible = highest_not_kept(s);
	awaiting_count(s, &stats);
	pthread_mutex_unlock(&s->mutex);
	while ((cp = asked) != NULL) {
		asked = cp->next;
		if (r == 0 && cp->lsn > forgotten && cp->lsn <= possible) {
			pthread_mutex_lock(&s->mutex);
			checkpoint_fifo_put(&s->to_checkpoint, cp);
			pthread_mutex_unlock(&s->mutex);
			continue;
		}
		if (r != 0 || cp->lsn > forgotten || stats.awaiting_refs > 0)
			decide(s, cp, r);
		else
			cp->lsn = forgotten;
		store_checkpointed(s, cp);
	}
}

/* ---- the thread ---- */

/* The weaker modes promise that nothing waits for longer than theirs. */
static int64_t interval_of(struct store *s)
{
	return rights_weakest(&s->rights) < REFD_DURABILITY_JOURNAL ?
	    s->cfg.durability_interval_ns :
	    s->cfg.checkpoint_interval_ns;
}

static void wait_interval(struct store *s, int64_t interval_ns)
{
	struct timespec until;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns = until.tv_nsec + interval_ns;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	pthread_cond_timedwait(&s->tick_cond, &s->mutex, &until);
}

void *checkpoint_main(void *arg)
{
	uint64_t windows = 0, before;
	bool idle, asked, waits = false;
	struct store *s = arg;
	int r;

	pthread_mutex_lock(&s->mutex);
	while (!s->stopping) {
		before = windows;
		if (waits)
			wait_interval(s, WINDOW_NS);
		else if (s->to_checkpoint.head == NULL)
			wait_interval(s, interval_of(s));
		windows = s->stats.windows;
		idle = windows == before;
		asked = s->to_checkpoint.head != NULL;
		if (s->stopping)
			break;
		s->retry_parked = s->awaiting != NULL;
		if (s->retry_parked)
			pthread_cond_signal(&s->lane_cond);
		pthread_mutex_unlock(&s->mutex);
		stage_begin(s, &s->checkpointing, s->state_dir);
		barrier_watch_clock(s);
		r = 0;
		if (asked || !may_wait(s))
			r = checkpoint_once(s, idle || asked);
		if (asked)
			answer_asked(s, r);
		barrier_tell_unmarked(s);
		/* Until its records are aside, a kill would leave nothing to
		 * say that they may be lost. */
		if (r < 0)
			failed_park(s);
		stage_end(s, &s->checkpointing);
		pthread_mutex_lock(&s->mutex);
		waits = s->to_checkpoint.head != NULL;
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}
