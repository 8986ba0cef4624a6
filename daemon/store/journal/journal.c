/*
 * The committer's side of the journal.
 *
 * Happy path:
 *	BEGIN IMMEDIATE, an INSERT per row, COMMIT: SQLite writes the changed
 *	pages to the end of the WAL as frames. The page of meta is one of them: the
 *	forgotten LSN, and the last one that is known to be on disk. Behind a
 *	frame that is damaged later, that number tells damage from a torn end
 *	(journal_look.c).
 *	Then, if it is to last, it waits for a flush that began after that
 *	(journal_flush.c). Until then others can read what is not on disk.
 * Who comes while a commit is under way waits, and one of those that wait
 * writes for all of them.
 * The first commit after the WAL has begun anew costs a sync of its own, also
 * where it need not last: old frames behind a header that was lost would pass
 * for the newest. A flush takes all before it along, so what a cut leaves is
 * always the beginning of what was committed.
 *
 * Failure modes:
 *	before COMMIT	nothing was written (the cache never spills): rolled
 *			back, a negative errno
 *	COMMIT fails in a write
 *			the frame with the commit mark is not whole: rolled
 *			back, -ENOSPC or -EIO. Where it may be whole after all
 *			(journal_wal.c): as a failed sync
 *	COMMIT fails in any other way, or the flush does
 *			the frames may be on disk, in memory only, or neither,
 *			and the kernel calls the pages clean: JOURNAL_UNKNOWN,
 *			now and for all that follows, until journal_reopen()
 *			has read the disk
 *	a ROLLBACK fails the connection is of no use: the same from then on
 *
 * LSNs are never used twice: the next one follows the highest of the rows and
 * of the forgotten LSN, and no row beyond the forgotten one is ever deleted
 * (journal_trim.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/journal/journal_internal.h"

bool journal_is_broken(struct journal *j)
{
	bool is_broken;

	pthread_mutex_lock(&j->hand_lock);
	is_broken = j->is_broken;
	pthread_mutex_unlock(&j->hand_lock);
	return is_broken;
}

void journal_break(struct journal *j)
{
	pthread_mutex_lock(&j->hand_lock);
	j->is_broken = true;
	pthread_mutex_unlock(&j->hand_lock);
}

uint64_t journal_guarded(struct journal *j, const uint64_t *number)
{
	uint64_t value;

	pthread_mutex_lock(&j->hand_lock);
	value = *number;
	pthread_mutex_unlock(&j->hand_lock);
	return value;
}

/* ---- one SQLite transaction; commit_lock is held ---- */

int journal_txn_begin(struct journal *j)
{
	if (journal_is_broken(j))
		return JOURNAL_UNKNOWN;
	return journal_errno(journal_run(j->begin));
}

static void txn_roll_back(struct journal *j)
{
	if (!sqlite3_get_autocommit(j->db) &&
	    journal_run(j->rollback) != SQLITE_OK)
		journal_break(j);
}

/* Pages written to the WAL since this was last asked. */
static int pages_written(struct journal *j)
{
	int nr = 0, highest;

	sqlite3_db_status(j->db, SQLITE_DBSTATUS_CACHE_WRITE, &nr, &highest, 1);
	return nr;
}

static void txn_committed(struct journal *j)
{
	bool wal_began = pages_written(j) == j->frames;

	if (wal_began)
		journal_wal_began(j);
	j->is_unmarked = true;
	pthread_mutex_lock(&j->hand_lock);
	j->is_caught_up = false;
	j->wal_frames = (uint64_t)j->frames;
	j->stats.commits++;
	j->stats.flushes += wal_began;
	pthread_mutex_unlock(&j->hand_lock);
}

static bool failed_in_write(int rc)
{
	return (rc & 0xff) == SQLITE_FULL || rc == SQLITE_IOERR_WRITE;
}

int journal_txn_end(struct journal *j, int rc)
{
	int r;

	if (rc != SQLITE_OK) {
		txn_roll_back(j);
		return journal_errno(rc);
	}
	pages_written(j);
	rc = journal_run(j->commit);
	if (rc == SQLITE_OK) {
		txn_committed(j);
		return 0;
	}
	r = JOURNAL_UNKNOWN;
	if (failed_in_write(rc) && !journal_wal_may_hold(j, pages_written(j)))
		r = journal_errno(rc);
	else
		journal_break(j);
	txn_roll_back(j);
	return r;
}

struct journal_mark journal_mark(struct journal *j)
{
	struct journal_mark mark;

	pthread_mutex_lock(&j->hand_lock);
	j->last_row = j->last_written;
	j->last_lsn = j->next_lsn - 1;
	j->written += j->is_unmarked;
	mark = (struct journal_mark){ j->written, j->epoch };
	pthread_mutex_unlock(&j->hand_lock);
	j->is_unmarked = false;
	return mark;
}

/* ---- rows ---- */

static uint32_t checksum_of(struct journal *j, const struct journal_row *row,
    uint64_t lsn)
{
	struct journal_row as_stored = *row;

	as_stored.lsn = lsn;
	as_stored.start = j->start;
	return journal_checksum(&as_stored);
}

static int insert_row(struct journal *j, const struct journal_row *row,
    uint64_t lsn)
{
	sqlite3_stmt *s = j->insert;
	int rc = SQLITE_OK;

	sqlite3_bind_int64(s, 1, (sqlite3_int64)lsn);
	sqlite3_bind_int(s, 2, (int)row->kind);
	sqlite3_bind_blob(s, 3, row->txid.bytes, sizeof(row->txid.bytes),
	    SQLITE_STATIC);
	sqlite3_bind_int64(s, 4, row->uid);
	sqlite3_bind_int64(s, 5, row->pid);
	sqlite3_bind_int64(s, 6, (sqlite3_int64)row->repo);
	sqlite3_bind_int64(s, 7, (sqlite3_int64)j->start);
	sqlite3_bind_int64(s, 8, (sqlite3_int64)row->token);
	sqlite3_bind_int64(s, 9, (sqlite3_int64)row->mount);
	sqlite3_bind_int64(s, 10, row->locked_at_ns);
	sqlite3_bind_int64(s, 11, row->time_us);
	sqlite3_bind_int64(s, 12, (sqlite3_int64)row->voids);
	sqlite3_bind_int(s, 13, row->final);
	/* NULL would be stored as such; an empty body is a body. */
	if (row->len == 0)
		sqlite3_bind_zeroblob(s, 14, 0);
	else
		rc = sqlite3_bind_blob64(s, 14, row->body, row->len,
		    SQLITE_STATIC);
	sqlite3_bind_int64(s, 15, checksum_of(j, row, lsn));
	return rc == SQLITE_OK ? journal_run(s) : rc;
}

static int write_row(struct journal *j, const struct journal_row *row,
    uint64_t lsn)
{
	int rc;

	if (row->kind == JOURNAL_UNPARK) {
		sqlite3_bind_int64(j->unpark, 1, (sqlite3_int64)row->voids);
		sqlite3_bind_int64(j->unkeep, 1, (sqlite3_int64)row->voids);
		rc = journal_run(j->unpark);
		return rc == SQLITE_OK ? journal_run(j->unkeep) : rc;
	}
	rc = insert_row(j, row, lsn);
	if (rc != SQLITE_OK || row->kind != JOURNAL_PARKED)
		return rc;
	sqlite3_bind_int64(j->park, 1, (sqlite3_int64)lsn);
	sqlite3_bind_int64(j->park, 2, (sqlite3_int64)row->repo);
	return journal_run(j->park);
}

static int write_all(struct journal *j, const struct journal_commit *c)
{
	uint64_t lsn = j->next_lsn;
	int rc = SQLITE_OK;
	size_t i;

	for (; c != NULL; c = c->next)
		for (i = 0; i < c->nr && rc == SQLITE_OK; i++) {
			rc = write_row(j, &c->rows[i], lsn);
			lsn += c->rows[i].kind != JOURNAL_UNPARK;
		}
	return rc;
}

/* One transaction for FIRST and those behind it, what is to be forgotten by
 * now, and what a flush has followed by now. */
static int write_together(struct journal *j, const struct journal_commit *first)
{
	uint64_t forget = journal_guarded(j, &j->forget_wanted);
	const struct journal_commit *c;
	size_t nr = 0;
	int r, rc;

	for (c = first; c != NULL; c = c->next)
		nr += c->nr;
	if (nr == 0 && forget == j->forgotten)
		return journal_is_broken(j) ? JOURNAL_UNKNOWN : 0;
	if ((r = journal_txn_begin(j)) != 0)
		return r;
	rc = write_all(j, first);
	if (rc == SQLITE_OK)
		rc = journal_write_meta(j, forget, j->trimmed);
	r = journal_txn_end(j, rc);
	if (r == 0)
		j->forgotten = forget;
	return r;
}

/* ---- committing together ---- */

static void number_rows(struct journal *j, struct journal_commit *c)
{
	size_t i;

	for (i = 0; i < c->nr; i++) {
		/* A number that no row bears would be missing later. */
		if (c->rows[i].kind != JOURNAL_UNPARK)
			j->last_written = c->rows[i].lsn = j->next_lsn++;
		c->rows[i].start = j->start;
	}
}

/* FIRST and those behind it, which were written together, or not. */
static void commits_are_over(struct journal *j, struct journal_commit *first,
    int r)
{
	struct journal_mark mark;
	struct journal_commit *c;

	for (c = first; c != NULL && r == 0; c = c->next)
		number_rows(j, c);
	mark = journal_mark(j);
	for (c = first; c != NULL; c = c->next) {
		c->r = r;
		c->mark = mark;
		c->is_over = true;
	}
}

/* FIRST and those behind it. What definitely can't be had together is tried
 * one by one: what stops one of them is none of the others' business. */
static void commit_all(struct journal *j, struct journal_commit *first)
{
	int r = write_together(j, first);
	struct journal_commit *c, *next;

	if (r >= 0 || first->next == NULL) {
		commits_are_over(j, first, r);
		return;
	}
	for (c = first; c != NULL; c = next) {
		next = c->next;
		c->next = NULL;
		commits_are_over(j, c, write_together(j, c));
	}
}

static struct journal_commit *take_waiting(struct journal *j)
{
	struct journal_commit *first;

	pthread_mutex_lock(&j->hand_lock);
	first = j->waiting;
	j->waiting = NULL;
	j->waiting_end = &j->waiting;
	pthread_mutex_unlock(&j->hand_lock);
	return first;
}

/* The LSNs that were given out to rows which are not there may not be theirs.
 */
static int clear_lsns(struct journal_row *rows, size_t nr, int r)
{
	size_t i;

	for (i = 0; i < nr && r != 0; i++)
		rows[i].lsn = 0;
	return r;
}

int journal_append(struct journal *j, struct journal_row *rows, size_t nr,
    struct journal_mark *mark)
{
	struct journal_commit me = { .rows = rows, .nr = nr };

	pthread_mutex_lock(&j->hand_lock);
	*j->waiting_end = &me;
	j->waiting_end = &me.next;
	pthread_mutex_unlock(&j->hand_lock);
	pthread_mutex_lock(&j->commit_lock);
	/* Somebody who waited with it may have taken it along. */
	if (!me.is_over)
		commit_all(j, take_waiting(j));
	pthread_mutex_unlock(&j->commit_lock);
	*mark = me.mark;
	return clear_lsns(rows, nr, me.r);
}

int journal_commit(struct journal *j, struct journal_row *rows, size_t nr,
    bool flush)
{
	struct journal_mark mark;
	int r = journal_append(j, rows, nr, &mark);

	if (r == 0 && flush)
		r = journal_flush_to(j, &mark);
	return clear_lsns(rows, nr, r);
}

int journal_forget(struct journal *j, uint64_t lsn, bool now)
{
	int r = 0;

	pthread_mutex_lock(&j->hand_lock);
	/* What is not written yet can't be forgotten. */
	if (lsn > j->last_lsn)
		lsn = j->last_lsn;
	if (lsn > j->forget_wanted)
		j->forget_wanted = lsn;
	pthread_mutex_unlock(&j->hand_lock);
	if (now)
		r = journal_commit(j, NULL, 0, true);
	return r;
}

void journal_unforget(struct journal *j)
{
	pthread_mutex_lock(&j->commit_lock);
	pthread_mutex_lock(&j->hand_lock);
	j->forget_wanted = j->forgotten;
	pthread_mutex_unlock(&j->hand_lock);
	pthread_mutex_unlock(&j->commit_lock);
}

/* ---- what it knows ---- */

uint32_t journal_owner(const struct journal *j)
{
	struct sys_stat st;

	return SYS(j->sys, lstatat, SYS_TRUSTED, j->path, &st) == 0 ?
	    st.uid :
	    (uint32_t)geteuid();
}

const uint8_t *journal_uuid(const struct journal *j)
{
	return j->uuid;
}

uint64_t journal_this_start(const struct journal *j)
{
	return j->start;
}

uint64_t journal_forgotten(struct journal *j)
{
	return journal_guarded(j, &j->forget_wanted);
}

uint64_t journal_last_lsn(struct journal *j)
{
	return journal_guarded(j, &j->last_lsn);
}

void journal_stats(struct journal *j, struct journal_stats *stats)
{
	const struct journal_commit *c;

	pthread_mutex_lock(&j->hand_lock);
	*stats = j->stats;
	stats->wal_bytes = j->wal_frames * JOURNAL_FRAME_BYTES;
	stats->waiting = j->flush_waiting;
	for (c = j->waiting; c != NULL; c = c->next)
		stats->waiting++;
	pthread_mutex_unlock(&j->hand_lock);
}
