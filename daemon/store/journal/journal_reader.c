/*
 * Look-ups by id, rows by their LSNs, and repositories, each for a thread with
 * a connection of its own (struct journal_reader), so no look-up waits for the
 * committer.
 *
 * Happy path: begin() has the prepared statement and keeps the journal open,
 * end() lets it go.
 *
 * Failure modes: as in journal_read.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

static const char *const reader_sql[JOURNAL_READER_STMTS] = {
	/* Of a trimmed row only the columns for a look-up remain, so the others
	 * are zeros. */
	[JOURNAL_READ_ID] =
	    "SELECT " JOURNAL_COLUMNS " FROM record"
	    " WHERE txid = ?1 AND (uid = ?2 OR ?2 = -1)"
	    " UNION ALL SELECT lsn, kind, txid, uid, 0, 0, 0, 0, 0, 0, 0, 0,"
	    " final, body, checksum, 0 FROM " JOURNAL_OLD_OUTCOMES
	    " WHERE txid = ?1 AND (uid = ?2 OR ?2 = -1) ORDER BY lsn",
	[JOURNAL_READ_NEWEST_ID] =
	    "SELECT max(txid) FROM (SELECT max(txid) AS txid FROM record"
	    " UNION ALL SELECT max(txid) FROM " JOURNAL_OLD_OUTCOMES ")",
	[JOURNAL_READ_UP] = "SELECT " JOURNAL_COLUMNS " FROM record"
			    " WHERE lsn > ?1 AND lsn < ?2"
			    " ORDER BY lsn LIMIT ?3",
	[JOURNAL_READ_DOWN] = "SELECT " JOURNAL_COLUMNS " FROM record"
			      " WHERE lsn > ?1 AND lsn < ?2"
			      " ORDER BY lsn DESC LIMIT ?3",
	/* A deferred copy of the row refers to the row, and an abort record
	 * refers to the row or to the copy. So rows about the copies are read,
	 * too. */
	[JOURNAL_READ_ABOUT] =
	    "SELECT " JOURNAL_COLUMNS " FROM record WHERE voids <> 0 AND voids"
	    " IN (SELECT ?1 UNION ALL SELECT lsn FROM record WHERE voids = ?1"
	    " AND voids <> 0) ORDER BY lsn",
	[JOURNAL_READ_ENDS] =
	    "SELECT coalesce((SELECT min(lsn) FROM record WHERE lsn > ?1 AND"
	    " lsn < ?2), 0), coalesce((SELECT max(lsn) FROM record"
	    " WHERE lsn > ?1 AND lsn < ?2), 0)",
	[JOURNAL_READ_REPO] =
	    "SELECT id, uuid, path, dev, ino FROM repo WHERE id = ?",
	[JOURNAL_READ_REPO_UUID] =
	    "SELECT id, uuid, path, dev, ino FROM repo WHERE uuid = ?",
};

/* ---- opening ---- */

int journal_reader_connect(struct journal_reader *reader)
{
	struct journal *j = reader->journal;
	size_t i;
	int rc;

	rc = journal_connect(j, j->cfg.path, &reader->db);
	for (i = 0; i < JOURNAL_READER_STMTS && rc == SQLITE_OK; i++)
		rc = journal_prepare(reader->db, reader_sql[i],
		    &reader->stmts[i]);
	return rc;
}

void journal_reader_disconnect(struct journal_reader *reader)
{
	memset(reader->stmts, 0, sizeof(reader->stmts));
	journal_disconnect(&reader->db);
}

int journal_reader_open(struct journal *j, struct journal_reader **reader)
{
	struct journal_reader *opened = calloc(1, sizeof(*opened));
	int rc;

	if (opened == NULL)
		return -ENOMEM;
	opened->journal = j;
	rwlock_read(&j->use_lock);
	rc = j->view.is_view ? SQLITE_OK : journal_reader_connect(opened);
	if (rc == SQLITE_OK) {
		mutex_lock(&j->hand_lock);
		LIST_INSERT_HEAD(&j->readers, opened, link);
		mutex_unlock(&j->hand_lock);
		*reader = opened;
	} else {
		journal_reader_disconnect(opened);
		free(opened);
	}
	rwlock_unlock(&j->use_lock);
	return journal_errno(rc);
}

void journal_reader_close(struct journal_reader *reader)
{
	struct journal *j;

	if (reader == NULL)
		return;
	j = reader->journal;
	rwlock_read(&j->use_lock);
	mutex_lock(&j->hand_lock);
	LIST_REMOVE(reader, link);
	mutex_unlock(&j->hand_lock);
	journal_reader_disconnect(reader);
	free(reader);
	rwlock_unlock(&j->use_lock);
}

/* ---- reading ---- */

/* A new connection reads a new copy of the WAL, so the connection stays as long
 * as the files are the same. */
static int begin_view(struct journal_reader *reader, bool old_row)
{
	struct journal *j = reader->journal;
	int r;

	r = journal_view_lock(j);
	if (r == 0 && reader->db != NULL &&
	    !journal_view_stands(j, &reader->sight, old_row))
		journal_reader_disconnect(reader);
	if (r != 0 || reader->db != NULL)
		return r;
	r = journal_errno(journal_reader_connect(reader));
	reader->sight = j->view.sight;
	if (r != 0)
		journal_reader_disconnect(reader);
	return r;
}

/* NULL: the journal awaits journal_reopen(), or a view can't read. Followed by
 * end() in any case. OLD_ROW: the row to be read is known to be there. */
static sqlite3_stmt *begin(struct journal_reader *reader,
    enum journal_reader_stmt which, bool old_row)
{
	struct journal *j = reader->journal;
	const bool is_first = reader->nr_reads++ == 0;
	int r = 0;

	/* A thread that has the lock must not wait for the lock again, because
	 * a writer may wait in between. */
	if (is_first)
		rwlock_read(&j->use_lock);
	if (journal_is_broken(j))
		r = JOURNAL_UNKNOWN;
	else if (is_first && j->view.is_view)
		r = begin_view(reader, old_row);
	reader->failed = r;
	return r == 0 ? reader->stmts[which] : NULL;
}

/* Returns R, the result of the calls with S. */
static int end(struct journal_reader *reader, sqlite3_stmt *s, int r)
{
	struct journal *j = reader->journal;
	const bool is_last = --reader->nr_reads == 0;

	sqlite3_reset(s);
	if (s == NULL)
		r = reader->failed;
	if (is_last && j->view.is_view)
		r = journal_view_unlock(j, r);
	if (is_last)
		rwlock_unlock(&j->use_lock);
	return r;
}

/* All rows of S. */
static int read_rows(struct journal_reader *reader, sqlite3_stmt *s,
    journal_row_fn *cb, void *arg)
{
	uint64_t last;
	unsigned nr;
	int r = 0;

	if (s != NULL)
		r = journal_each_row(reader->journal, s, cb, arg, &nr, &last);
	return end(reader, s, r);
}

int journal_lookup(struct journal_reader *reader, int64_t uid,
    const struct refd_txid *txid, journal_row_fn *cb, void *arg)
{
	sqlite3_stmt *s = begin(reader, JOURNAL_READ_ID, false);

	if (s != NULL) {
		sqlite3_bind_blob(s, 1, txid->bytes, sizeof(txid->bytes),
		    SQLITE_STATIC);
		sqlite3_bind_int64(s, 2, uid);
	}
	return read_rows(reader, s, cb, arg);
}

int journal_read(struct journal_reader *reader, uint64_t after, uint64_t before,
    bool down, unsigned max, journal_row_fn *cb, void *arg)
{
	sqlite3_stmt *s =
	    begin(reader, down ? JOURNAL_READ_DOWN : JOURNAL_READ_UP, max == 1);

	if (s != NULL) {
		sqlite3_bind_int64(s, 1, journal_signed(after));
		sqlite3_bind_int64(s, 2, journal_signed(before));
		sqlite3_bind_int64(s, 3, max);
	}
	return read_rows(reader, s, cb, arg);
}

int journal_read_about(struct journal_reader *reader, uint64_t lsn,
    journal_row_fn *cb, void *arg)
{
	sqlite3_stmt *s = begin(reader, JOURNAL_READ_ABOUT, false);

	if (s != NULL)
		sqlite3_bind_int64(s, 1, journal_signed(lsn));
	return read_rows(reader, s, cb, arg);
}

int journal_newest_id(struct journal_reader *reader, struct refd_txid *newest)
{
	sqlite3_stmt *s = begin(reader, JOURNAL_READ_NEWEST_ID, false);
	int rc = s != NULL ? sqlite3_step(s) : SQLITE_DONE;

	memset(newest, 0, sizeof(*newest));
	if (rc == SQLITE_ROW &&
	    sqlite3_column_bytes(s, 0) == sizeof(newest->bytes))
		memcpy(newest->bytes, sqlite3_column_blob(s, 0),
		    sizeof(newest->bytes));
	return end(reader, s, rc == SQLITE_ROW ? 0 : journal_errno(rc));
}

int journal_ends_between(struct journal_reader *reader, uint64_t after,
    uint64_t before, uint64_t *first, uint64_t *last)
{
	sqlite3_stmt *s = begin(reader, JOURNAL_READ_ENDS, false);
	int rc = SQLITE_DONE;

	if (s != NULL) {
		sqlite3_bind_int64(s, 1, journal_signed(after));
		sqlite3_bind_int64(s, 2, journal_signed(before));
		rc = sqlite3_step(s);
	}
	if (rc == SQLITE_ROW) {
		*first = (uint64_t)sqlite3_column_int64(s, 0);
		*last = (uint64_t)sqlite3_column_int64(s, 1);
	}
	return end(reader, s, rc == SQLITE_ROW ? 0 : journal_errno(rc));
}

/* Not prepared before, because the table may come later than READER, or
 * never. */
int journal_chain_start(struct journal_reader *reader,
    struct journal_chain *chain)
{
	sqlite3_stmt *open = begin(reader, JOURNAL_READ_ENDS, false), *s = NULL;
	int rc = SQLITE_DONE;

	*chain =
	    (struct journal_chain){ .lsn = journal_trimmed(reader->journal) };
	if (open != NULL)
		rc = journal_prepare(reader->db,
		    "SELECT digest FROM " JOURNAL_CHAIN " WHERE lsn = ?", &s);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, (sqlite3_int64)chain->lsn);
		rc = sqlite3_step(s);
	}
	if (rc == SQLITE_ROW &&
	    sqlite3_column_bytes(s, 0) == sizeof(chain->digest))
		memcpy(chain->digest, sqlite3_column_blob(s, 0),
		    sizeof(chain->digest));
	sqlite3_finalize(s);
	if (rc == SQLITE_ROW || rc == SQLITE_DONE || rc == SQLITE_ERROR)
		rc = SQLITE_OK;
	return end(reader, open, journal_errno(rc));
}

int journal_read_repo(struct journal_reader *reader, uint64_t id,
    const uint8_t *uuid, struct journal_repo *repo)
{
	sqlite3_stmt *s = begin(reader,
	    uuid != NULL ? JOURNAL_READ_REPO_UUID : JOURNAL_READ_REPO, false);
	int rc = SQLITE_DONE, r;

	if (s != NULL) {
		if (uuid != NULL)
			sqlite3_bind_blob(s, 1, uuid, 16, SQLITE_STATIC);
		else
			sqlite3_bind_int64(s, 1, journal_signed(id));
		rc = sqlite3_step(s);
	}
	r = rc == SQLITE_DONE ? -ENOENT : journal_errno(rc);
	if (rc == SQLITE_ROW)
		r = journal_repo_of(s, repo);
	if (r == 0 && (repo->path = strdup(repo->path)) == NULL)
		r = -ENOMEM;
	return end(reader, s, r);
}
