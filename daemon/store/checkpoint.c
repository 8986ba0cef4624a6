/*
 * The checkpoint: what was published becomes durable, so that its records
 * need no replay.
 *
 * The happy path, once an interval and never in a commit's way:
 *	floor	the highest LSN below which every window has ended and no
 *		record is left to the next start
 *	note	in each repository published to, how far the journal has come
 *	sync	every file system published to (fs_sync_published()): syncfs on
 *		a descriptor that was open before the first rename there
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

#include "daemon/store/checkpoint_sync.h"
#include "daemon/store/store_internal.h"

/* SQLite copies the WAL into its database when the WAL has so many bytes, or
 * after so long. Each time that the WAL begins anew, the next commit pays a
 * flush more. A new repository does not wait: if the WAL is damaged, what the
 * repositories of the database have seen tells. */
#define WAL_COPIED_BYTES (2 * 1024 * 1024)
#define WAL_COPIED_NS    (INT64_C(600) * 1000000000)
#define WAL_MAX_BYTES    (16 * 1024 * 1024)
#define WINDOW_NS        (2 * 1000 * 1000) /* one may take so long to end */

/* ---- the checkpoint ---- */

/* LSN; or the LSN before the first record that the next start needs, if that is
 * lower. */
static uint64_t below_deferred(struct store *s, uint64_t lsn)
{
	uint64_t lowest = deferred_lowest_lsn(s->deferred);

	return lowest != 0 && lowest - 1 < lsn ? lowest - 1 : lsn;
}

/* The highest LSN that may be forgotten once everything is synced. A window
 * defers its updates before it ends, so the windows are asked first. */
static uint64_t highest_ended(struct store *s)
{
	uint64_t ended = pipeline_ended_lsn(s->pipeline);

	return below_deferred(s, ended);
}

/* Nobody waits for it, and the disk is left alone. */
static bool may_wait(struct store *s)
{
	struct journal_stats stats;
	struct fs *fs;

	if (rights_weakest(&s->rights) != REFD_DURABILITY_NONE)
		return false;
	for (fs = fs_first(&s->repos); fs != NULL; fs = fs->next)
		if (!fs->gone && atomic_load(&fs->promised))
			return false;
	journal_stats(s->journal, &stats);
	return stats.wal_bytes < WAL_MAX_BYTES;
}

/* A round that left a sync behind is neither done nor failed. */
static void count(struct store *s, int r, bool is_whole, int64_t began_ns)
{
	int64_t now_ns = SYS(s->sys, now_mono);
	struct sys_stat st;
	bool has_size =
	    SYS(s->sys, lstatat, s->state_fd, JOURNAL_NAME, &st) == 0;

	pthread_mutex_lock(&s->mutex);
	s->stats.checkpoints += r == 0 && is_whole;
	s->stats.checkpoint_failures += r != 0;
	s->stats.checkpoint_took_ns = now_ns - began_ns;
	if (r == 0 && is_whole)
		s->stats.checkpoint_ns = now_ns;
	if (has_size)
		s->stats.journal_bytes = (uint64_t)st.size;
	pthread_mutex_unlock(&s->mutex);
}

/* The weaker modes promise that nothing waits for longer than theirs. Under
 * MUTEX: a reload changes both. */
static int64_t interval_of(struct store *s)
{
	return rights_weakest(&s->rights) < REFD_DURABILITY_JOURNAL ?
	    s->cfg.durability_interval_ns :
	    s->cfg.checkpoint_interval_ns;
}

/* The monotonic clock NS from now. */
static struct timespec after(int64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += until.tv_nsec;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	return until;
}

/* The rule for SQLite's own checkpoint. */
static int copy_wal(struct store *s)
{
	int64_t now_ns = SYS(s->sys, now_mono);
	struct journal_stats stats;

	journal_stats(s->journal, &stats);
	if (stats.wal_bytes < WAL_COPIED_BYTES &&
	    stats.repos == s->repos_copied &&
	    now_ns - s->wal_copied_ns < WAL_COPIED_NS)
		return 0;
	s->wal_copied_ns = now_ns;
	s->repos_copied = stats.repos;
	return journal_checkpoint(s->journal, WAL_MAX_BYTES);
}

int checkpoint_once(struct store *s, bool now)
{
	int64_t began_ns = SYS(s->sys, now_mono);
	bool unflushed, is_whole;
	struct timespec until;
	uint64_t ended, lsn;
	int r = 0;

	if (store_fatal(s) != NULL)
		return -EIO;
	failed_park(s);
	lsn = ended = highest_ended(s);
	/* First the rows: what a repository has seen of them is not to be more
	 * than a cut leaves. Those that are not forgotten have to last too. */
	unflushed = journal_is_unflushed(s->journal);
	if (unflushed)
		r = commit_log_wait(s->log, NULL, COMMIT_LOG_DURABLE);
	if (r == 0 && (unflushed || lsn > journal_forgotten(s->journal))) {
		pthread_mutex_lock(&s->mutex);
		until = after(interval_of(s));
		pthread_mutex_unlock(&s->mutex);
		r = checkpoint_sync_all(s, &lsn, &until);
	}
	is_whole = lsn == ended;
	count(s, r, is_whole, began_ns);
	if (r == 0 && (now || lsn > journal_forgotten(s->journal)))
		r = journal_forget(s->journal, lsn, now);
	if (r <= 0 && copy_wal(s) == JOURNAL_UNKNOWN)
		r = JOURNAL_UNKNOWN;
	if (r != JOURNAL_UNKNOWN)
		return r;
	r = commit_log_mend(s->log);
	/* It may have been this that got lost. */
	if (r == 0 && now)
		r = journal_forget(s->journal, lsn, true);
	return r > 0 ? -EIO : r;
}

/* ---- those that were asked for ---- */

static void decide(struct store *s, struct store_checkpoint *cp, int r)
{
	const char *path = checkpoint_unsynced(s);

	cp->status = REFD_IO;
	if (r < 0 && path != NULL)
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
	uint64_t forgotten, possible, repos, members;

	pthread_mutex_lock(&s->mutex);
	asked = s->to_checkpoint.head;
	s->to_checkpoint.head = NULL;
	forgotten = journal_forgotten(s->journal);
	possible = below_deferred(s, journal_last_lsn(s->journal));
	pthread_mutex_unlock(&s->mutex);
	deferred_count(s->deferred, &repos, &members);
	while ((cp = asked) != NULL) {
		asked = cp->next;
		if (r == 0 && cp->lsn > forgotten && cp->lsn <= possible) {
			pthread_mutex_lock(&s->mutex);
			checkpoint_fifo_put(&s->to_checkpoint, cp);
			pthread_mutex_unlock(&s->mutex);
			continue;
		}
		if (r != 0 || cp->lsn > forgotten || members > 0)
			decide(s, cp, r);
		else
			cp->lsn = forgotten;
		completions_put_checkpoint(&s->completions, cp);
	}
}

/* ---- the thread ---- */

/* For the next round, which is due at *NEXT if the last one left a sync
 * behind. */
static void wait_for_round(struct store *s, struct timespec *next)
{
	if (s->to_checkpoint.head == NULL) {
		if (checkpoint_syncs_ended(s))
			*next = after(interval_of(s));
		pthread_cond_timedwait(&s->tick_cond, &s->mutex, next);
	}
	*next = after(interval_of(s));
}

/* Those that were asked for wait for a window to end. */
static void wait_for_windows(struct store *s)
{
	const struct timespec until = after(WINDOW_NS);

	pthread_cond_timedwait(&s->tick_cond, &s->mutex, &until);
}

void *checkpoint_main(void *arg)
{
	uint64_t windows = 0, before;
	struct timespec next = { 0 };
	bool idle, asked, waits = false;
	struct store *s = arg;
	int r;

	pthread_mutex_lock(&s->mutex);
	while (!s->stopping) {
		before = windows;
		if (waits)
			wait_for_windows(s);
		else
			wait_for_round(s, &next);
		windows = pipeline_windows(s->pipeline);
		idle = windows == before;
		asked = s->to_checkpoint.head != NULL;
		if (s->stopping)
			break;
		if (deferred_begin_turn(s->deferred))
			pthread_cond_signal(&s->lane_cond);
		pthread_mutex_unlock(&s->mutex);
		stage_begin(s, &s->checkpointing, s->state_dir);
		fs_sync_watch_clock(&s->repos);
		r = 0;
		if (asked || !may_wait(s))
			r = checkpoint_once(s, idle || asked);
		if (asked)
			answer_asked(s, r);
		fs_sync_tell_unmarked(&s->repos);
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
