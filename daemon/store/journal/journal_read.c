/*
 * Reads rows of the journal beside the committer, and scans all of them.
 *
 * Happy path: a connection other than the committer's, a read transaction of a
 * few rows, a callback for each row. A transaction is visible after its COMMIT,
 * perhaps before its flush.
 *
 * Failure modes:
 *	a long read would keep the WAL from beginning anew: a scan reads a few
 *	rows at a time, and holds no read transaction in between
 *	the journal awaits journal_reopen(): JOURNAL_UNKNOWN, because a
 *	transaction that is invisible now may be visible then. Reopening waits
 *	for readers, and readers wait for reopening
 *	a row differs from the written row: -EUCLEAN, and journal_damage() names
 *	the row. Later rows are not read
 *	an I/O error, a damaged page: a negative errno. journal_damage() tells
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

#define SLICE_ROWS 256
/* No LSN of a row. */
#define PAGE UINT64_MAX

static uint64_t column_u64(sqlite3_stmt *s, int column)
{
	return (uint64_t)sqlite3_column_int64(s, column);
}

void journal_note_damage(struct journal *j, uint64_t lsn)
{
	mutex_lock(&j->hand_lock);
	if (j->lsn.damaged == 0)
		j->lsn.damaged = lsn;
	mutex_unlock(&j->hand_lock);
}

bool journal_is_damaged(struct journal *j)
{
	return journal_guarded(j, &j->lsn.damaged) != 0;
}

char *journal_damage(struct journal *j)
{
	uint64_t lsn = journal_guarded(j, &j->lsn.damaged);
	char *text = NULL;

	if (lsn == PAGE)
		journal_say(&text, 0,
		    "a page of %s is damaged; nothing was "
		    "changed: " JOURNAL_WHAT_HELPS,
		    j->cfg.path);
	else if (lsn != 0)
		journal_say(&text, 0,
		    "%s is damaged: record %llu is not what was written there "
		    "(its checksum is another); nothing was "
		    "changed: " JOURNAL_WHAT_HELPS,
		    j->cfg.path, (unsigned long long)lsn);
	return text;
}

static int row_of(struct journal *j, sqlite3_stmt *s, struct journal_row *row)
{
	const void *txid = sqlite3_column_blob(s, 2);
	const bool has_txid =
	    sqlite3_column_bytes(s, 2) == sizeof(row->txid.bytes);

	memset(row, 0, sizeof(*row));
	if (txid != NULL && has_txid)
		memcpy(row->txid.bytes, txid, sizeof(row->txid.bytes));
	row->lsn = column_u64(s, 0);
	row->kind = (enum journal_kind)sqlite3_column_int(s, 1);
	row->uid = (uint32_t)sqlite3_column_int64(s, 3);
	row->pid = sqlite3_column_int64(s, 4);
	row->repo = column_u64(s, 5);
	row->start = column_u64(s, 6);
	row->token = column_u64(s, 7);
	row->mount = column_u64(s, 8);
	row->locked_at_ns = sqlite3_column_int64(s, 9);
	row->time_us = sqlite3_column_int64(s, 10);
	row->refers_to = column_u64(s, 11);
	row->final = sqlite3_column_int(s, 12) != 0;
	row->body = sqlite3_column_blob(s, 13);
	row->len = (size_t)sqlite3_column_bytes(s, 13);
	row->shared_lsn = column_u64(s, 15);
	if (has_txid && column_u64(s, 14) == journal_checksum(row))
		return 0;
	journal_note_damage(j, row->lsn);
	return -EUCLEAN;
}

/* Returns R. Only a wrong page is damage, because a page that the disk cannot
 * read now may be read next time. */
static int page_failed(struct journal *j, int r)
{
	if (r == -EBADMSG)
		journal_note_damage(j, PAGE);
	return r;
}

int journal_each_row(struct journal *j, sqlite3_stmt *s, journal_row_fn *cb,
    void *arg, unsigned *nr, uint64_t *last)
{
	struct journal_row row;
	int rc, r = 0;

	*nr = 0;
	while (r == 0 && (rc = sqlite3_step(s)) != SQLITE_DONE) {
		if (rc != SQLITE_ROW)
			r = page_failed(j, journal_errno(rc));
		else if ((r = row_of(j, s, &row)) == 0)
			r = cb(arg, &row);
		if (r == 0) {
			*last = row.lsn;
			++*nr;
		}
	}
	sqlite3_reset(s);
	return r;
}

/* ---- scans, on a connection for the time they take ---- */

struct row_scan {
	struct journal *journal;
	sqlite3 *db;
	sqlite3_stmt *stmt;
};

/* Close SCAN even after a failure. */
static int scan_open(struct row_scan *scan, struct journal *j, const char *sql)
{
	int r = 0, rc;

	*scan = (struct row_scan){ .journal = j };
	rwlock_read(&j->use_lock);
	if (journal_is_broken(j))
		return JOURNAL_UNKNOWN;
	if (j->view.is_view && (r = journal_view_lock(j)) != 0)
		return r;
	rc = journal_connect(j, j->cfg.path, &scan->db);
	if (rc == SQLITE_OK)
		rc = journal_prepare(scan->db, sql, &scan->stmt);
	return journal_errno(rc);
}

/* Returns R, the result of the scan. */
static int scan_close(struct row_scan *scan, int r)
{
	journal_disconnect(&scan->db);
	if (scan->journal->view.is_view)
		r = journal_view_unlock(scan->journal, r);
	rwlock_unlock(&scan->journal->use_lock);
	return r;
}

int journal_scan(struct journal *j, uint64_t after, journal_row_fn *cb,
    void *arg)
{
	struct row_scan scan;
	unsigned nr;
	int r;

	r = scan_open(&scan, j,
	    "SELECT " JOURNAL_COLUMNS " FROM record WHERE lsn > ?"
	    " ORDER BY lsn LIMIT ?");
	for (nr = SLICE_ROWS; r == 0 && nr == SLICE_ROWS;) {
		sqlite3_bind_int64(scan.stmt, 1, journal_signed(after));
		sqlite3_bind_int(scan.stmt, 2, SLICE_ROWS);
		r = journal_each_row(j, scan.stmt, cb, arg, &nr, &after);
	}
	return scan_close(&scan, r);
}

/* Deferred rows are few, as a rule, and recovery reads them while there are few
 * commits. So one read transaction has all of them. */
int journal_each_deferred(struct journal *j, uint64_t repo, journal_row_fn *cb,
    void *arg)
{
	struct row_scan scan;
	uint64_t last;
	unsigned nr;
	int r;

	r = scan_open(&scan, j,
	    "SELECT " JOURNAL_COLUMNS " FROM record WHERE lsn IN"
	    " (SELECT lsn FROM " JOURNAL_OPEN_DEFERRED
	    " WHERE ?1 = 0 OR repo = ?1)"
	    " ORDER BY lsn");
	if (r == 0) {
		sqlite3_bind_int64(scan.stmt, 1, (sqlite3_int64)repo);
		r = journal_each_row(j, scan.stmt, cb, arg, &nr, &last);
	}
	return scan_close(&scan, r);
}

/* 1: there is a row. */
static int scan_next(struct row_scan *scan)
{
	int rc = sqlite3_step(scan->stmt);

	if (rc == SQLITE_DONE)
		return 0;
	return rc == SQLITE_ROW ? 1 : journal_errno(rc);
}

int journal_read_objects(struct journal *j, uint64_t lsn, uint8_t **bytes,
    size_t *len)
{
	struct row_scan scan;
	int r, more = 0;

	*bytes = NULL;
	*len = 0;
	r = scan_open(&scan, j,
	    "SELECT checksum, bytes FROM " JOURNAL_OBJECTS " WHERE lsn = ?");
	if (r == 0) {
		sqlite3_bind_int64(scan.stmt, 1, journal_signed(lsn));
		more = scan_next(&scan);
	}
	if (more == 1)
		r = journal_take_objects(j, scan.stmt, lsn, bytes, len);
	return scan_close(&scan, more < 0 ? more : r);
}

int journal_is_elsewhere(struct journal *j, uint64_t repo, uint64_t mount,
    bool *is_elsewhere)
{
	struct row_scan scan;
	int r, more = 0;

	r = scan_open(&scan, j,
	    "SELECT 1 FROM record WHERE lsn > ? AND repo = ? AND kind = ?"
	    " AND mount <> ? LIMIT 1");
	if (r == 0) {
		sqlite3_bind_int64(scan.stmt, 1,
		    (sqlite3_int64)journal_forgotten(j));
		sqlite3_bind_int64(scan.stmt, 2, (sqlite3_int64)repo);
		sqlite3_bind_int(scan.stmt, 3, JOURNAL_SLICE);
		sqlite3_bind_int64(scan.stmt, 4, (sqlite3_int64)mount);
		more = scan_next(&scan);
	}
	*is_elsewhere = more == 1;
	return scan_close(&scan, more < 0 ? more : r);
}

static int start_of(const struct journal *j, sqlite3_stmt *s,
    struct journal_start *start)
{
	const unsigned char *boot_id = sqlite3_column_text(s, 1);

	if (boot_id == NULL)
		return -EBADMSG;
	start->id = column_u64(s, 0);
	start->is_of_boot = strcmp((const char *)boot_id, j->cfg.boot_id) == 0;
	start->is_of_memory = start->is_of_boot &&
	    column_u64(s, 2) == j->file.fs && column_u64(s, 3) == j->file.ino &&
	    sqlite3_column_int64(s, 4) == j->file.born_ns;
	return 0;
}

int journal_each_start(struct journal *j,
    int (*cb)(void *arg, const struct journal_start *start), void *arg)
{
	struct journal_start start;
	struct row_scan scan;
	int r, more = 1;

	r = scan_open(&scan, j,
	    "SELECT id, boot_id, fs, ino, born_ns FROM start ORDER BY id");
	while (r == 0 && (more = scan_next(&scan)) > 0)
		if ((r = start_of(j, scan.stmt, &start)) == 0)
			r = cb(arg, &start);
	return scan_close(&scan, r == 0 && more < 0 ? more : r);
}

int journal_repo_of(sqlite3_stmt *s, struct journal_repo *repo)
{
	const void *uuid = sqlite3_column_blob(s, 1);
	const unsigned char *path = sqlite3_column_text(s, 2);

	if (uuid == NULL || path == NULL ||
	    sqlite3_column_bytes(s, 1) != sizeof(repo->uuid))
		return -EBADMSG;
	repo->id = column_u64(s, 0);
	memcpy(repo->uuid, uuid, sizeof(repo->uuid));
	repo->path = (char *)(uintptr_t)path;
	repo->dev = column_u64(s, 3);
	repo->ino = column_u64(s, 4);
	return 0;
}

/* UUID NULL: all of them. */
static int each_repo(struct journal *j, const uint8_t *uuid,
    int (*cb)(void *arg, const struct journal_repo *repo), void *arg)
{
	struct journal_repo repo;
	struct row_scan scan;
	int r, more = 1;

	r = scan_open(&scan, j,
	    uuid == NULL ?
		"SELECT id, uuid, path, dev, ino FROM repo ORDER BY id" :
		"SELECT id, uuid, path, dev, ino FROM repo WHERE uuid = ?");
	if (r == 0 && uuid != NULL)
		sqlite3_bind_blob(scan.stmt, 1, uuid, 16, SQLITE_STATIC);
	while (r == 0 && (more = scan_next(&scan)) > 0)
		if ((r = journal_repo_of(scan.stmt, &repo)) == 0)
			r = cb(arg, &repo);
	return scan_close(&scan, r == 0 && more < 0 ? more : r);
}

int journal_each_repo(struct journal *j,
    int (*cb)(void *arg, const struct journal_repo *repo), void *arg)
{
	return each_repo(j, NULL, cb, arg);
}

int journal_find_repo(struct journal *j, const uint8_t uuid[16],
    int (*cb)(void *arg, const struct journal_repo *repo), void *arg)
{
	return each_repo(j, uuid, cb, arg);
}
