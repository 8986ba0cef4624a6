/*
 * One round of the checkpointer: published refs become durable, so that their
 * records need no replay, and the records are forgotten.
 *
 * The happy path; no commit ever waits for it:
 *	floor	the highest LSN up to which every batch has ended, and every
 *		update is finished
 *	note	the last LSN of the journal, in each repository published to
 *	sync	each file system published to, by syncfs (checkpoint_sync.c)
 *	forget	in the journal: with the next commit, or now if none comes;
 *		the objects of forgotten rows are deleted
 *	sqlite	SQLite's own checkpoint, and the length of its WAL
 *
 * The weaker modes of durability need the same round. In mode periodic it makes
 * answered updates durable after each durability.interval, and also flushes the
 * rows of the journal. Mode none promises nothing, so the records stay until
 * the journal is large, and a start can repair damage of a power loss.
 *
 * The round syncs no single files, because by now the ref may be the file of
 * another writer, or a line of packed-refs. A syncfs covers both.
 *
 * Failures: after a failed sync memory and disk may differ, so refd no longer
 * trusts the file system. Nothing is forgotten until its records are deferred
 * (deferred_fs.c). After a failed sync of SQLite the journal is opened again.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/checkpoint/checkpointer_internal.h"
#include "daemon/store/deferred/deferred_fs.h"

/* SQLite copies the WAL into its database when the WAL has this size, or after
 * this time. Afterwards the WAL begins anew, and the next commit needs one more
 * flush, so a copy should be rare. After a new repository the WAL is copied at
 * once, because the repositories in the database show later whether a damaged
 * WAL had more records. */
#define WAL_COPIED_BYTES (2 * 1024 * 1024)
#define WAL_COPIED_NS    (INT64_C(600) * 1000000000)
#define WAL_MAX_BYTES    (16 * 1024 * 1024)

/* ---- the checkpoint ---- */

/* LSN, or the LSN before the first record that the next start needs, if that is
 * lower. */
static uint64_t below_deferred(struct checkpointer *c, uint64_t lsn)
{
	uint64_t lowest = deferred_lowest_lsn(c->cfg->deferred);

	return lowest != 0 && lowest - 1 < lsn ? lowest - 1 : lsn;
}

/* The highest LSN that may be forgotten after the sync. The batches are asked
 * first, because a batch defers its updates before it ends. */
static uint64_t highest_ended(struct checkpointer *c)
{
	uint64_t ended = pipeline_ended_lsn(c->cfg->pipeline);

	return below_deferred(c, ended);
}

bool checkpoint_may_wait(struct checkpointer *c)
{
	struct journal_stats stats;
	struct fs *fs;

	if (rights_weakest(c->cfg->rights) != REFD_DURABILITY_NONE)
		return false;
	for (fs = fs_first(c->cfg->repos); fs != NULL; fs = fs->next)
		if (fs->state != FS_GONE && atomic_load(&fs->promised))
			return false;
	journal_stats(c->journal, &stats);
	return stats.wal_bytes < WAL_MAX_BYTES;
}

/* A round with unfinished syncs is neither done nor failed. */
static void count(struct checkpointer *c, int r, bool is_whole,
    int64_t began_ns)
{
	int64_t now_ns = SYS(c->cfg->sys, now_mono);
	struct sys_stat st;
	bool has_size =
	    SYS(c->cfg->sys, lstatat, c->cfg->state_fd, JOURNAL_NAME, &st) == 0;

	mutex_lock(&c->mutex);
	c->nr_done += r == 0 && is_whole;
	c->nr_failed += r != 0;
	c->took_ns = now_ns - began_ns;
	if (r == 0 && is_whole)
		c->done_ns = now_ns;
	if (has_size)
		c->journal_bytes = (uint64_t)st.size;
	mutex_unlock(&c->mutex);
}

/* The rule for SQLite's own checkpoint. */
static int copy_wal(struct checkpointer *c)
{
	int64_t now_ns = SYS(c->cfg->sys, now_mono);
	struct journal_stats stats;
	int r;

	journal_stats(c->journal, &stats);
	if (stats.wal_bytes < WAL_COPIED_BYTES &&
	    stats.repos == c->repos_copied &&
	    now_ns - c->wal_copied_ns < WAL_COPIED_NS)
		return 0;
	r = journal_checkpoint(c->journal, WAL_MAX_BYTES);
	if (r == 0) {
		c->wal_copied_ns = now_ns;
		c->repos_copied = stats.repos;
	}
	return r;
}

int checkpointer_once(struct checkpointer *c, bool now)
{
	int64_t began_ns = SYS(c->cfg->sys, now_mono);
	bool unflushed, is_whole;
	struct timespec until;
	uint64_t ended, lsn;
	int failed, r = 0;

	deferred_fs_let_go(c->cfg->deferred);
	lsn = ended = highest_ended(c);
	/* Without memory, an unfinished update cannot be noted, and the floor
	 * could then be too high. The store becomes fatal before such a batch
	 * ends, so this check comes after the floor is known. */
	if (store_fatal(c->cfg->store) != NULL)
		return -EIO;
	/* The rows come first, because a repository must not note an LSN that a
	 * power loss can take back. The rows that stay must be durable too. */
	unflushed = journal_is_unflushed(c->journal);
	if (unflushed)
		r = commit_log_wait(c->cfg->log, NULL, COMMIT_LOG_DURABLE);
	if (r == 0 && (unflushed || lsn > journal_forgotten(c->journal))) {
		mutex_lock(&c->mutex);
		until = checkpointer_deadline(c);
		mutex_unlock(&c->mutex);
		r = checkpoint_sync_all(c, &lsn, &until);
	}
	/* A flush or a sync failed, so the rows or refs may not be durable, and
	 * no row is forgotten. */
	if (r != 0)
		lsn = 0;
	is_whole = lsn == ended;
	count(c, r, is_whole, began_ns);
	failed = r > 0 ? -EIO : r;
	if (r == 0 && (now || lsn > journal_forgotten(c->journal)))
		r = journal_forget(c->journal, lsn, now);
	if (r == 0 && journal_drop_objects(c->journal) == JOURNAL_UNKNOWN)
		r = JOURNAL_UNKNOWN;
	if (r <= 0 && copy_wal(c) == JOURNAL_UNKNOWN)
		r = JOURNAL_UNKNOWN;
	if (r != JOURNAL_UNKNOWN)
		return r;
	r = commit_log_mend(c->cfg->log);
	/* The note of forgotten rows may have been lost, so it is made
	 * again. */
	if (r == 0 && now)
		r = journal_forget(c->journal, lsn, true);
	if (failed < 0)
		return failed;
	return r > 0 ? -EIO : r;
}

/* ---- questions ---- */

static void refuse(struct checkpointer *c, struct store_question *cp, int r)
{
	const char *path = checkpoint_sync_failed(c);
	char *why;

	if (r < 0 && path != NULL)
		why = repo_why("can't sync the file system of '%s': %s", path,
		    strerror(-r));
	else if (r < 0)
		why = repo_why("%s", strerror(-r));
	else
		why = repo_why("updates that were answered await recovery: see "
			       "the daemon's log, and what is deferred in "
			       "'refd status'");
	question_refuse_for(cp, REFD_IO, why);
}

/* Reads the queue before the LSNs, all under MUTEX, so that this round answers
 * no later question. */
void checkpoint_answer(struct checkpointer *c, int r)
{
	struct store_question *asked, *cp;
	uint64_t forgotten, possible, repos, members;

	mutex_lock(&c->mutex);
	asked = c->asked.head;
	c->asked.head = NULL;
	forgotten = journal_forgotten(c->journal);
	possible = below_deferred(c, journal_last_lsn(c->journal));
	mutex_unlock(&c->mutex);
	deferred_count(c->cfg->deferred, &repos, &members);
	while ((cp = asked) != NULL) {
		asked = cp->next;
		if (r == 0 && cp->lsn > forgotten && cp->lsn <= possible) {
			mutex_lock(&c->mutex);
			question_fifo_put(&c->asked, cp);
			mutex_unlock(&c->mutex);
			continue;
		}
		if (r != 0 || cp->lsn > forgotten || members > 0)
			refuse(c, cp, r);
		else
			question_tell_number(cp, "lsn", forgotten);
		completions_put_question(c->cfg->completions, cp);
	}
}
