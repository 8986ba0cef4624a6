/*
 * Rows by their LSNs, and repositories, for readers of history.
 *
 * Happy path: a few rows at a time, on a reader's connection.
 *
 * Failure modes: as in journal_read.c.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

int journal_range_prepare(struct journal_reader *reader)
{
	static const char up[] = "SELECT " JOURNAL_COLUMNS " FROM record"
				 " WHERE lsn > ?1 AND lsn < ?2"
				 " ORDER BY lsn LIMIT ?3";
	static const char down[] = "SELECT " JOURNAL_COLUMNS " FROM record"
				   " WHERE lsn > ?1 AND lsn < ?2"
				   " ORDER BY lsn DESC LIMIT ?3";
	/* A deferred copy of the row refers to the row, and an abort record
	 * refers to the row or to such a copy. */
	static const char about[] =
	    "SELECT " JOURNAL_COLUMNS " FROM record WHERE voids <> 0 AND voids"
	    " IN (SELECT ?1 UNION ALL SELECT lsn FROM record WHERE voids = ?1"
	    " AND voids <> 0) ORDER BY lsn";
	static const char ends[] =
	    "SELECT coalesce((SELECT min(lsn) FROM record WHERE lsn > ?1 AND"
	    " lsn < ?2), 0), coalesce((SELECT max(lsn) FROM record"
	    " WHERE lsn > ?1 AND lsn < ?2), 0)";
	static const char repo[] =
	    "SELECT id, uuid, path, dev, ino FROM repo WHERE id = ?";
	static const char by_uuid[] =
	    "SELECT id, uuid, path, dev, ino FROM repo WHERE uuid = ?";
	const struct {
		const char *sql;
		sqlite3_stmt **stmt;
	} all[] = { { up, &reader->up }, { down, &reader->down },
		{ about, &reader->about }, { ends, &reader->ends },
		{ repo, &reader->repo_by_id },
		{ by_uuid, &reader->repo_by_uuid } };
	int rc = SQLITE_OK;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]) && rc == SQLITE_OK; i++)
		rc = journal_prepare(reader->db, all[i].sql, all[i].stmt);
	return rc;
}

void journal_range_finalize(struct journal_reader *reader)
{
	sqlite3_finalize(reader->up);
	sqlite3_finalize(reader->down);
	sqlite3_finalize(reader->about);
	sqlite3_finalize(reader->ends);
	sqlite3_finalize(reader->repo_by_id);
	sqlite3_finalize(reader->repo_by_uuid);
	reader->up = reader->down = reader->about = reader->ends =
	    reader->repo_by_id = reader->repo_by_uuid = NULL;
}

static int read_rows(struct journal *j, sqlite3_stmt *s, journal_row_fn *cb,
    void *arg)
{
	uint64_t last;
	unsigned nr;

	return journal_each_row(j, s, cb, arg, &nr, &last);
}

int journal_read(struct journal_reader *reader, uint64_t after, uint64_t before,
    bool down, unsigned max, journal_row_fn *cb, void *arg)
{
	struct journal *j = reader->journal;
	sqlite3_stmt *s;
	int r = JOURNAL_UNKNOWN;

	pthread_rwlock_rdlock(&j->use_lock);
	if (!journal_is_broken(j)) {
		s = down ? reader->down : reader->up;
		sqlite3_bind_int64(s, 1, journal_signed(after));
		sqlite3_bind_int64(s, 2, journal_signed(before));
		sqlite3_bind_int64(s, 3, max);
		r = read_rows(j, s, cb, arg);
	}
	pthread_rwlock_unlock(&j->use_lock);
	return r;
}

int journal_ends_between(struct journal_reader *reader, uint64_t after,
    uint64_t before, uint64_t *first, uint64_t *last)
{
	struct journal *j = reader->journal;
	sqlite3_stmt *s;
	int rc, r = JOURNAL_UNKNOWN;

	pthread_rwlock_rdlock(&j->use_lock);
	if (!journal_is_broken(j)) {
		s = reader->ends;
		sqlite3_bind_int64(s, 1, journal_signed(after));
		sqlite3_bind_int64(s, 2, journal_signed(before));
		rc = sqlite3_step(s);
		if (rc == SQLITE_ROW) {
			*first = (uint64_t)sqlite3_column_int64(s, 0);
			*last = (uint64_t)sqlite3_column_int64(s, 1);
		}
		r = rc == SQLITE_ROW ? 0 : journal_errno(rc);
		sqlite3_reset(s);
	}
	pthread_rwlock_unlock(&j->use_lock);
	return r;
}

int journal_read_about(struct journal_reader *reader, uint64_t lsn,
    journal_row_fn *cb, void *arg)
{
	struct journal *j = reader->journal;
	int r = JOURNAL_UNKNOWN;

	pthread_rwlock_rdlock(&j->use_lock);
	if (!journal_is_broken(j)) {
		sqlite3_bind_int64(reader->about, 1, journal_signed(lsn));
		r = read_rows(j, reader->about, cb, arg);
	}
	pthread_rwlock_unlock(&j->use_lock);
	return r;
}

int journal_read_repo(struct journal_reader *reader, uint64_t id,
    const uint8_t *uuid, struct journal_repo *repo)
{
	struct journal *j = reader->journal;
	sqlite3_stmt *s;
	int rc, r = JOURNAL_UNKNOWN;

	pthread_rwlock_rdlock(&j->use_lock);
	if (!journal_is_broken(j)) {
		s = uuid != NULL ? reader->repo_by_uuid : reader->repo_by_id;
		if (uuid != NULL)
			sqlite3_bind_blob(s, 1, uuid, 16, SQLITE_STATIC);
		else
			sqlite3_bind_int64(s, 1, journal_signed(id));
		rc = sqlite3_step(s);
		r = rc == SQLITE_DONE ? -ENOENT : journal_errno(rc);
		if (rc == SQLITE_ROW)
			r = journal_repo_of(s, repo);
		if (r == 0 && (repo->path = strdup(repo->path)) == NULL)
			r = -ENOMEM;
		sqlite3_reset(s);
	}
	pthread_rwlock_unlock(&j->use_lock);
	return r;
}
