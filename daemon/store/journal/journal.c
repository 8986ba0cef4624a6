/*
 * The committer's side of the journal.
 *
 * Happy path:
 *	BEGIN IMMEDIATE, an INSERT per row, COMMIT: SQLite writes the changed
 *	pages to the end of the WAL as frames. The page of meta is a frame of
 *	each commit: the forgotten LSN, and the last LSN known to be on disk.
 *	If an earlier frame is damaged later, this last LSN tells the damage
 *	from a torn end (journal_look.c).
 *	For durability the caller then waits for a flush begun after the commit
 *	(journal_flush.c). Until the flush is over, readers see rows not yet on
 *	disk.
 * Callers wait while a commit is under way. A waiting caller then commits the
 * rows of all waiting callers, so one transaction serves them all. If a power
 * loss took the header of a new WAL, the old frames would pass for the newest.
 * So the first commit after the WAL has begun anew costs a sync of its own,
 * even if the caller wants no flush. A flush covers all earlier commits, so a
 * power loss always leaves a prefix of the commits.
 *
 * Failure modes:
 *	before COMMIT	nothing was written (the cache never spills): rolled
 *			back, a negative errno
 *	COMMIT fails in a write
 *			the frame with the commit mark is not whole: rolled
 *			back, -ENOSPC or -EIO. If the frame may be whole after
 *			all (journal_wal.c): as a failed sync
 *	COMMIT fails in any other way, or the flush does
 *			the frames may be on disk, in memory only, or neither,
 *			and the kernel calls the pages clean: JOURNAL_UNKNOWN
 *			for this call and all later calls, until
 *			journal_reopen() has read the disk
 *	a ROLLBACK fails
 *			the connection is of no use: JOURNAL_UNKNOWN from then
 *			on
 *
 * An LSN is never used twice, because the next LSN follows the highest LSN of
 * the rows and the forgotten LSN, and no row beyond the forgotten LSN is ever
 * deleted (journal_trim.c).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/journal/journal_internal.h"

bool journal_is_broken(struct journal *j)
{
	bool is_broken;

	mutex_lock(&j->hand_lock);
	is_broken = j->is_broken;
	mutex_unlock(&j->hand_lock);
	return is_broken;
}

void journal_break(struct journal *j)
{
	mutex_lock(&j->hand_lock);
	j->is_broken = true;
	mutex_unlock(&j->hand_lock);
}

uint64_t journal_guarded(struct journal *j, const uint64_t *number)
{
	uint64_t value;

	mutex_lock(&j->hand_lock);
	value = *number;
	mutex_unlock(&j->hand_lock);
	return value;
}

/* ---- one SQLite transaction; commit_lock is held ---- */

int journal_txn_begin(struct journal *j)
{
	if (journal_is_broken(j))
		return JOURNAL_UNKNOWN;
	return journal_errno(journal_run(j->stmts.begin));
}

static void txn_roll_back(struct journal *j)
{
	if (!sqlite3_get_autocommit(j->db) &&
	    journal_run(j->stmts.rollback) != SQLITE_OK)
		journal_break(j);
}

/* Pages written to the WAL since the last call. */
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
	mutex_lock(&j->hand_lock);
	j->is_caught_up = false;
	j->wal_frames = (uint64_t)j->frames;
	j->stats.commits++;
	j->stats.flushes += wal_began;
	mutex_unlock(&j->hand_lock);
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
	rc = journal_run(j->stmts.commit);
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

	mutex_lock(&j->hand_lock);
	j->lsn.last_row = j->last_written;
	j->lsn.last = j->next_lsn - 1;
	j->lsn.forgotten = j->meta.forgotten;
	j->shared = j->meta.shared;
	j->counts.written += j->is_unmarked;
	mark = (struct journal_mark){ j->counts.written, j->counts.epoch };
	mutex_unlock(&j->hand_lock);
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
	sqlite3_stmt *s = j->stmts.insert;
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
	sqlite3_bind_int64(s, 12, (sqlite3_int64)row->refers_to);
	sqlite3_bind_int(s, 13, row->final);
	/* A null pointer would be stored as NULL, but an empty body is a body,
	 * so this is a blob without bytes. */
	if (row->len == 0)
		sqlite3_bind_zeroblob(s, 14, 0);
	else
		rc = sqlite3_bind_blob64(s, 14, row->body, row->len,
		    SQLITE_STATIC);
	sqlite3_bind_int64(s, 15, checksum_of(j, row, lsn));
	sqlite3_bind_int64(s, 16, (sqlite3_int64)row->shared_lsn);
	return rc == SQLITE_OK ? journal_run(s) : rc;
}

static int write_row(struct journal *j, const struct journal_row *row,
    uint64_t lsn)
{
	int rc;

	if (row->kind == JOURNAL_WAITING)
		return journal_write_waiting(j, row);
	if (row->kind == JOURNAL_DEFERRED_END) {
		sqlite3_bind_int64(j->stmts.end_deferred, 1,
		    (sqlite3_int64)row->refers_to);
		sqlite3_bind_int64(j->stmts.unkeep, 1,
		    (sqlite3_int64)row->refers_to);
		rc = journal_run(j->stmts.end_deferred);
		return rc == SQLITE_OK ? journal_run(j->stmts.unkeep) : rc;
	}
	rc = insert_row(j, row, lsn);
	if (rc == SQLITE_OK && journal_is_late(j, row))
		rc = journal_end_waiting(j, row);
	if (rc == SQLITE_OK)
		rc = journal_write_values(j, row);
	if (rc == SQLITE_OK)
		rc = journal_write_objects(j, lsn, row);
	if (rc != SQLITE_OK || row->kind != JOURNAL_DEFERRED)
		return rc;
	sqlite3_bind_int64(j->stmts.defer, 1, (sqlite3_int64)lsn);
	sqlite3_bind_int64(j->stmts.defer, 2, (sqlite3_int64)row->repo);
	return journal_run(j->stmts.defer);
}

static int write_all(struct journal *j, const struct journal_commit *c)
{
	uint64_t lsn = j->next_lsn;
	int rc = SQLITE_OK;
	size_t i;

	for (; c != NULL; c = c->next)
		for (i = 0; i < c->nr && rc == SQLITE_OK; i++) {
			rc = write_row(j, &c->rows[i], lsn);
			lsn += journal_is_stored(&c->rows[i]);
		}
	return rc;
}

/* Writes in a single transaction: the rows of FIRST and of the commits behind
 * FIRST, the LSN to forget, the shared log, and the last LSN known to be on
 * disk. */
static int write_together(struct journal *j, const struct journal_commit *first)
{
	struct journal_meta meta = j->meta;
	const struct journal_commit *c;
	uint8_t wanted[16];
	size_t nr = 0;
	int r = 0, rc;

	mutex_lock(&j->hand_lock);
	meta.forgotten = j->lsn.forget_wanted;
	memcpy(wanted, j->shared_wanted, sizeof(wanted));
	mutex_unlock(&j->hand_lock);
	for (c = first; c != NULL && r == 0; c = c->next) {
		nr += c->nr;
		r = journal_add_shared(j, &meta.shared, wanted, c);
	}
	if (r != 0)
		return r;
	if (nr == 0 && meta.forgotten == j->meta.forgotten)
		return journal_is_broken(j) ? JOURNAL_UNKNOWN : 0;
	if ((r = journal_txn_begin(j)) != 0)
		return r;
	rc = write_all(j, first);
	if (rc == SQLITE_OK)
		rc = journal_write_meta(j, &meta);
	r = journal_txn_end(j, rc);
	if (r == 0)
		j->meta = meta;
	return r;
}

/* ---- committing together ---- */

static void number_rows(struct journal *j, struct journal_commit *c)
{
	size_t i;

	for (i = 0; i < c->nr; i++) {
		/* A row that is not stored gets no LSN, because an unused LSN
		 * would look lost. */
		if (journal_is_stored(&c->rows[i]))
			j->last_written = c->rows[i].lsn = j->next_lsn++;
		c->rows[i].start = j->start;
	}
}

/* Tells FIRST and the commits behind FIRST their common result R. */
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

/* Writes FIRST and the commits behind FIRST in a single transaction. After a
 * definite failure, writes each commit alone, because a failing commit must not
 * stop the other commits. */
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

	mutex_lock(&j->hand_lock);
	first = j->waiting;
	j->waiting = NULL;
	j->waiting_end = &j->waiting;
	mutex_unlock(&j->hand_lock);
	return first;
}

/* After a failure other rows may get the LSNs, so these rows have none. */
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

	mutex_lock(&j->hand_lock);
	*j->waiting_end = &me;
	j->waiting_end = &me.next;
	mutex_unlock(&j->hand_lock);
	mutex_lock(&j->commit_lock);
	/* Another caller may have committed these rows. */
	if (!me.is_over)
		commit_all(j, take_waiting(j));
	mutex_unlock(&j->commit_lock);
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

	mutex_lock(&j->hand_lock);
	/* Only written rows can be forgotten. */
	if (lsn > j->lsn.last)
		lsn = j->lsn.last;
	if (lsn > j->lsn.forget_wanted)
		j->lsn.forget_wanted = lsn;
	mutex_unlock(&j->hand_lock);
	if (now)
		r = journal_commit(j, NULL, 0, true);
	return r;
}

void journal_unforget(struct journal *j)
{
	mutex_lock(&j->commit_lock);
	mutex_lock(&j->hand_lock);
	j->lsn.forget_wanted = j->meta.forgotten;
	mutex_unlock(&j->hand_lock);
	mutex_unlock(&j->commit_lock);
}

/* ---- numbers ---- */

uint32_t journal_owner(const struct journal *j)
{
	struct sys_stat st;

	return SYS(j->sys, lstatat, SYS_TRUSTED, j->cfg.path, &st) == 0 ?
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
	return journal_guarded(j, &j->lsn.forget_wanted);
}

uint64_t journal_forgotten_durably(struct journal *j)
{
	return journal_guarded(j, &j->lsn.forgotten_durable);
}

uint64_t journal_last_lsn(struct journal *j)
{
	return journal_guarded(j, &j->lsn.last);
}

void journal_stats(struct journal *j, struct journal_stats *stats)
{
	const struct journal_commit *c;

	mutex_lock(&j->hand_lock);
	*stats = j->stats;
	stats->wal_bytes = j->wal_frames * JOURNAL_FRAME_BYTES;
	stats->waiting = j->flush.waiting;
	for (c = j->waiting; c != NULL; c = c->next)
		stats->waiting++;
	mutex_unlock(&j->hand_lock);
}
