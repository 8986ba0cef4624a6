/*
 * The new objects of rows: bytes that recovery needs until the row is
 * forgotten.
 *
 * Happy path:
 *	write	with the row, in the same SQLite transaction
 *	drop	the objects of forgotten rows are deleted, in small transactions
 *		without a sync. A crash may bring the objects back; nobody reads
 *		them, and the next call deletes them again
 * A deferred row has the objects of the row that it refers to, so these stay.
 *
 * Failure modes:
 *	as of a commit (journal.c): nothing happened, or JOURNAL_UNKNOWN
 *	the bytes differ from the stored checksum: -EUCLEAN
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

/* A transaction holds the committer's lock, so one transaction deletes only so
 * many rows. */
#define AT_ONCE "16"

#define FORGOTTEN                                                              \
	"SELECT lsn FROM " JOURNAL_OBJECTS " WHERE lsn <= ?1"                  \
	" AND lsn NOT IN (SELECT voids FROM record WHERE lsn IN"               \
	" (SELECT lsn FROM " JOURNAL_OPEN_DEFERRED "))"                        \
	" LIMIT " AT_ONCE

int journal_write_objects(struct journal *j, uint64_t lsn,
    const struct journal_row *row)
{
	sqlite3_stmt *s = j->stmts.insert_objects;
	int rc;

	if (row->objects_len == 0)
		return SQLITE_OK;
	sqlite3_bind_int64(s, 1, (sqlite3_int64)lsn);
	sqlite3_bind_int64(s, 2,
	    journal_objects_checksum(lsn, row->objects, row->objects_len));
	rc = sqlite3_bind_blob64(s, 3, row->objects, row->objects_len,
	    SQLITE_STATIC);
	/* If the transaction fails, the sum is too large until it is read
	 * again. */
	mutex_lock(&j->hand_lock);
	j->lsn.objects_bytes += row->objects_len;
	mutex_unlock(&j->hand_lock);
	return rc == SQLITE_OK ? journal_run(s) : rc;
}

int journal_take_objects(struct journal *j, sqlite3_stmt *s, uint64_t lsn,
    uint8_t **bytes, size_t *len)
{
	const size_t size = (size_t)sqlite3_column_bytes(s, 1);
	const uint8_t *stored = sqlite3_column_blob(s, 1);

	if (size == 0)
		return 0;
	if ((uint32_t)sqlite3_column_int64(s, 0) !=
	    journal_objects_checksum(lsn, stored, size)) {
		journal_note_damage(j, lsn);
		return -EUCLEAN;
	}
	*bytes = malloc(size);
	if (*bytes == NULL)
		return -ENOMEM;
	memcpy(*bytes, stored, size);
	*len = size;
	return 0;
}

/* commit_lock is held. */
static int read_bytes(struct journal *j)
{
	int64_t bytes = 0;
	int rc;

	rc = journal_query(j->db,
	    "SELECT coalesce(sum(length(bytes)), 0) FROM " JOURNAL_OBJECTS, 0,
	    0, &bytes);
	mutex_lock(&j->hand_lock);
	if (rc == SQLITE_OK)
		j->lsn.objects_bytes = (uint64_t)bytes;
	mutex_unlock(&j->hand_lock);
	return journal_errno(rc);
}

/* Some builds of SQLite overwrite deleted content with zeros. Then the deletion
 * would write as much as the insertion. */
static int set_secure(struct journal *j, int64_t value)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "PRAGMA secure_delete = %lld",
	    (long long)value);
	return sqlite3_exec(j->db, sql, NULL, NULL, NULL);
}

#define SECURE_FAST 2 /* overwrite only what is written anyway */

static int delete_some(struct journal *j)
{
	int64_t secure = 0;
	int rc;

	rc = journal_query(j->db, "PRAGMA secure_delete", 0, 0, &secure);
	if (rc == SQLITE_OK)
		rc = set_secure(j, SECURE_FAST);
	if (rc == SQLITE_OK)
		rc = journal_query(j->db,
		    "DELETE FROM " JOURNAL_OBJECTS " WHERE lsn IN (" FORGOTTEN
		    ")",
		    j->meta.forgotten, 0, NULL);
	set_secure(j, secure);
	return rc;
}

/* commit_lock is held. *MORE: perhaps there are more to delete. */
static int drop_some(struct journal *j, bool *more)
{
	int64_t nr = 0;
	int r, rc;

	*more = false;
	rc = journal_query(j->db, "SELECT count(*) FROM (" FORGOTTEN ")",
	    j->meta.forgotten, 0, &nr);
	if (rc != SQLITE_OK)
		return journal_errno(rc);
	if (nr == 0)
		return read_bytes(j);
	if ((r = journal_txn_begin(j)) != 0)
		return r;
	r = journal_txn_end(j, delete_some(j));
	*more = r == 0;
	return r;
}

int journal_drop_objects(struct journal *j)
{
	bool more = true;
	int r = 0;

	while (more && r == 0) {
		mutex_lock(&j->commit_lock);
		r = journal_is_broken(j) ? JOURNAL_UNKNOWN :
					   drop_some(j, &more);
		mutex_unlock(&j->commit_lock);
	}
	return r;
}

uint64_t journal_objects_bytes(struct journal *j)
{
	return journal_guarded(j, &j->lsn.objects_bytes);
}
