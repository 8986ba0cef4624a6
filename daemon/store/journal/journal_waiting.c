/*
 * Shared rows that wait.
 *
 * Happy path:
 *	write	the row takes its turn in the shared order
 *		(journal_add_shared()), in the transaction that counts its LSN
 *	place	a later row of another repository has the same place
 *	end	the transaction that appends the row as a SLICE deletes it here
 *
 * Each step is one transaction, so each shared row up to the highest LSN is a
 * SLICE or waits, and never both, whenever the power fails.
 *
 * Failure modes:
 *	as of a commit (journal.c): nothing happened, or JOURNAL_UNKNOWN
 *	the bytes differ from the stored checksum: -EUCLEAN
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

#define UUID_BYTES 16

bool journal_is_late(const struct journal *j, const struct journal_row *row)
{
	return row->kind == JOURNAL_SLICE && row->shared_lsn != 0 &&
	    row->shared_lsn <= j->meta.shared.lsn;
}

int journal_write_waiting(struct journal *j, const struct journal_row *row)
{
	sqlite3_stmt *s = j->stmts.wait;

	sqlite3_bind_int64(s, 1, (sqlite3_int64)row->shared_lsn);
	sqlite3_bind_blob(s, 2, row->waiting_repo, UUID_BYTES, SQLITE_STATIC);
	sqlite3_bind_blob64(s, 3, row->waiting_path, row->waiting_path_len,
	    SQLITE_STATIC);
	sqlite3_bind_int64(s, 4,
	    journal_objects_checksum(row->shared_lsn, row->body, row->len));
	sqlite3_bind_blob64(s, 5, row->body, row->len, SQLITE_STATIC);
	return journal_run(s);
}

int journal_end_waiting(struct journal *j, const struct journal_row *row)
{
	int rc;

	sqlite3_bind_int64(j->stmts.end_wait, 1,
	    (sqlite3_int64)row->shared_lsn);
	rc = journal_run(j->stmts.end_wait);
	return rc == SQLITE_OK && sqlite3_changes(j->db) != 1 ?
	    SQLITE_CONSTRAINT :
	    rc;
}

/* 1: ROW is the next row of S, without bytes. */
static int step(sqlite3_stmt *s, struct journal_waiting *row)
{
	int rc = sqlite3_step(s);

	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? 0 : journal_errno(rc);
	if (sqlite3_column_bytes(s, 1) != UUID_BYTES)
		return -EUCLEAN;
	*row =
	    (struct journal_waiting){ .lsn =
					  (uint64_t)sqlite3_column_int64(s, 0),
		    .has_place = sqlite3_column_int(s, 2) };
	memcpy(row->repo, sqlite3_column_blob(s, 1), UUID_BYTES);
	return 1;
}

/* Prepares SQL; commit_lock is held. */
static int prepare(struct journal *j, const char *sql, sqlite3_stmt **s)
{
	*s = NULL;
	return journal_is_broken(j) ?
	    JOURNAL_UNKNOWN :
	    journal_errno(journal_prepare(j->db, sql, s));
}

int journal_each_waiting(struct journal *j,
    int (*cb)(void *arg, const struct journal_waiting *row), void *arg)
{
	struct journal_waiting row;
	sqlite3_stmt *s;
	int r;

	mutex_lock(&j->commit_lock);
	r = prepare(j,
	    "SELECT min(lsn), repo, has_place FROM " JOURNAL_WAITING_ROWS
	    " GROUP BY repo ORDER BY 1",
	    &s);
	while (r == 0 && (r = step(s, &row)) == 1)
		r = cb(arg, &row);
	sqlite3_finalize(s);
	mutex_unlock(&j->commit_lock);
	return r;
}

static int read_waiting(sqlite3_stmt *s, const uint8_t repo[UUID_BYTES],
    struct journal_waiting *row)
{
	int r;

	sqlite3_bind_blob(s, 1, repo, UUID_BYTES, SQLITE_STATIC);
	r = step(s, row);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	row->len = (size_t)sqlite3_column_bytes(s, 4);
	if ((uint32_t)sqlite3_column_int64(s, 3) !=
	    journal_objects_checksum(row->lsn, sqlite3_column_blob(s, 4),
		row->len))
		return -EUCLEAN;
	row->bytes = malloc(row->len + 1);
	if (row->bytes == NULL)
		return -ENOMEM;
	memcpy(row->bytes, sqlite3_column_blob(s, 4), row->len);
	return 0;
}

int journal_read_waiting(struct journal *j, const uint8_t repo[UUID_BYTES],
    struct journal_waiting *row)
{
	sqlite3_stmt *s;
	int r;

	*row = (struct journal_waiting){ .bytes = NULL };
	mutex_lock(&j->commit_lock);
	r = prepare(j,
	    "SELECT lsn, repo, has_place, checksum, bytes"
	    " FROM " JOURNAL_WAITING_ROWS " WHERE repo = ?"
	    " ORDER BY lsn LIMIT 1",
	    &s);
	if (r == 0)
		r = read_waiting(s, repo, row);
	sqlite3_finalize(s);
	mutex_unlock(&j->commit_lock);
	return r;
}

/* ---- places ---- */

#define TAKE_PLACE                                                             \
	"UPDATE " JOURNAL_WAITING_ROWS " SET has_place = 0 WHERE has_place AND"

/* A repository can have very many rows at its path, and SQLite must not look at
 * all of them. So the repository is left out by "<" and ">" in two statements,
 * because with "<>" SQLite would look at all rows. */
static const char *const taking[] = {
	TAKE_PLACE " path = ?2 AND repo < ?1",
	TAKE_PLACE " path = ?2 AND repo > ?1",
	TAKE_PLACE " path > CAST(?2 || '/' AS BLOB)"
		   " AND path < CAST(?2 || '0' AS BLOB) AND repo <> ?1",
};
enum { BEFORE, AFTER, BELOW, NR_TAKING };

/* An SQLite code. */
static int take(sqlite3_stmt *s, const uint8_t repo[UUID_BYTES],
    const uint8_t *path, size_t len)
{
	sqlite3_bind_blob(s, 1, repo, UUID_BYTES, SQLITE_STATIC);
	sqlite3_bind_blob64(s, 2, path, len, SQLITE_STATIC);
	return journal_run(s);
}

/* The place, and those above it and below it. */
static int take_all(sqlite3_stmt *const s[NR_TAKING],
    const uint8_t repo[UUID_BYTES], const uint8_t *path, size_t len)
{
	int rc = take(s[BELOW], repo, path, len);
	size_t i;

	for (i = 1; i <= len && rc == SQLITE_OK; i++) {
		if (i < len && path[i] != '/')
			continue;
		rc = take(s[BEFORE], repo, path, i);
		if (rc == SQLITE_OK)
			rc = take(s[AFTER], repo, path, i);
	}
	return rc;
}

int journal_take_place(struct journal *j, const uint8_t repo[UUID_BYTES],
    const uint8_t *path, size_t len)
{
	sqlite3_stmt *s[NR_TAKING] = { NULL };
	int i, r = 0;

	mutex_lock(&j->commit_lock);
	for (i = 0; i < NR_TAKING && r == 0; i++)
		r = prepare(j, taking[i], &s[i]);
	if (r == 0)
		r = journal_txn_begin(j);
	if (r == 0) {
		r = journal_txn_end(j, take_all(s, repo, path, len));
		journal_mark(j);
	}
	for (i = 0; i < NR_TAKING; i++)
		sqlite3_finalize(s[i]);
	mutex_unlock(&j->commit_lock);
	return r;
}
