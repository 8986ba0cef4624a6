/*
 * Deletes old rows, and keeps the outcomes of ids that clients may still ask
 * for.
 *
 * Happy path, for some rows, all forgotten:
 *	rows with ids still known are copied into the table of old outcomes,
 *	with only the columns for a look-up; all rows are deleted; meta has the
 *	last LSN, and the table of the chain their digest
 * All steps are a single SQLite transaction. A crash before the next flush only
 * brings the rows back, to be trimmed again, so the transaction has no sync,
 * and trimming waits for nothing. SQLite uses the space again; the file never
 * shrinks.
 *
 * Failure modes:
 *	as of a commit (journal.c): nothing happened, or JOURNAL_UNKNOWN
 *	a row is deferred still	it stays, out of sight, until it is redone
 */
#include <errno.h>

#include "daemon/store/journal/journal_internal.h"

/* A transaction holds the committer's lock, so one call expires only so many
 * ids. The table is in the order of birth, so these ids are side by side. */
#define EXPIRED_AT_ONCE "500"

/* Covers the columns for a look-up. */
static uint32_t checksum_of(const struct journal_row *row)
{
	const struct journal_row kept = { .lsn = row->lsn,
		.kind = row->kind,
		.txid = row->txid,
		.uid = row->uid,
		.final = row->final,
		.body = row->body,
		.len = row->len };

	return journal_checksum(&kept);
}

static int insert_outcome(sqlite3_stmt *s, const struct journal_row *row)
{
	sqlite3_bind_blob(s, 1, row->txid.bytes, sizeof(row->txid.bytes),
	    SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, row->uid);
	sqlite3_bind_int64(s, 3, (sqlite3_int64)row->lsn);
	sqlite3_bind_int(s, 4, (int)row->kind);
	sqlite3_bind_int(s, 5, row->final);
	sqlite3_bind_blob64(s, 6, row->body, row->len, SQLITE_STATIC);
	sqlite3_bind_int64(s, 7, checksum_of(row));
	return journal_run(s);
}

static int insert_outcomes(struct journal *j, const struct journal_row *rows,
    size_t nr)
{
	sqlite3_stmt *s = NULL;
	size_t i;
	int rc;

	rc = journal_prepare(j->db,
	    "INSERT OR REPLACE INTO " JOURNAL_OLD_OUTCOMES
	    " VALUES(?, ?, ?, ?, ?, ?, ?)",
	    &s);
	for (i = 0; i < nr && rc == SQLITE_OK; i++)
		rc = insert_outcome(s, &rows[i]);
	sqlite3_finalize(s);
	return rc;
}

static int expire(struct journal *j, const struct refd_txid *expired)
{
	sqlite3_stmt *s = NULL;
	int rc;

	rc = journal_prepare(j->db,
	    "DELETE FROM " JOURNAL_OLD_OUTCOMES " WHERE (txid, uid, lsn) IN"
	    " (SELECT txid, uid, lsn FROM " JOURNAL_OLD_OUTCOMES
	    " WHERE txid < ?"
	    " ORDER BY txid LIMIT " EXPIRED_AT_ONCE ")",
	    &s);
	if (rc == SQLITE_OK) {
		sqlite3_bind_blob(s, 1, expired->bytes, sizeof(expired->bytes),
		    SQLITE_STATIC);
		rc = journal_run(s);
	}
	sqlite3_finalize(s);
	return rc;
}

static int trim(struct journal *j, const struct journal_chain *upto,
    const struct journal_row *keep, size_t nr, const struct refd_txid *expired)
{
	struct journal_meta meta = j->meta;
	int r, rc;

	if ((r = journal_txn_begin(j)) != 0)
		return r;
	if (meta.trimmed < upto->lsn)
		meta.trimmed = upto->lsn;
	rc = insert_outcomes(j, keep, nr);
	if (rc == SQLITE_OK)
		rc = journal_query(j->db,
		    "DELETE FROM record WHERE lsn > ?1 AND lsn <= ?2"
		    " AND lsn NOT IN (SELECT lsn FROM " JOURNAL_OPEN_DEFERRED
		    ")",
		    j->meta.trimmed, meta.trimmed, NULL);
	if (rc == SQLITE_OK && meta.trimmed > j->meta.trimmed)
		rc = journal_write_chain(j, upto);
	if (rc == SQLITE_OK)
		rc = journal_write_meta(j, &meta);
	if (rc == SQLITE_OK)
		rc = expire(j, expired);
	r = journal_txn_end(j, rc);
	if (r == 0)
		j->meta = meta;
	return r;
}

int journal_trim(struct journal *j, const struct journal_chain *upto,
    const struct journal_row *keep, size_t nr, const struct refd_txid *expired)
{
	int r;

	mutex_lock(&j->commit_lock);
	if (upto->lsn > j->meta.forgotten)
		r = -EBUSY;
	else
		r = trim(j, upto, keep, nr, expired);
	if (r == 0) {
		mutex_lock(&j->hand_lock);
		j->lsn.trimmed = j->meta.trimmed;
		mutex_unlock(&j->hand_lock);
	}
	mutex_unlock(&j->commit_lock);
	return r;
}

uint64_t journal_trimmed(struct journal *j)
{
	return journal_guarded(j, &j->lsn.trimmed);
}
