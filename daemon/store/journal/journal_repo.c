/*
 * The tables of the daemon's starts and of the registered repositories.
 *
 * Happy path: a row for each start and each repository, in a transaction of its
 * own. Numbers of batches contain the number of a start, which no later start
 * may get. So the row of a start is on disk when the call returns. The next
 * flush, shared with commits, brings the rows of repositories to disk.
 *
 * Failure modes: those of a commit (journal.c).
 */
#include "daemon/store/journal/journal_internal.h"

static int identify(struct journal *j)
{
	int dir, r;

	dir = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.dir,
	    O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	r = SYS(j->sys, file_id, dir, JOURNAL_NAME, &j->file);
	SYS(j->sys, close, dir);
	return r;
}

int journal_register_start(struct journal *j)
{
	struct journal_mark mark;
	sqlite3_stmt *s = NULL;
	int r, rc;

	r = identify(j);
	if (r < 0)
		return r;
	rc = journal_prepare(j->db,
	    "INSERT INTO start(boot_id, fs, ino, born_ns, time_us)"
	    " VALUES(?, ?, ?, ?, ?)",
	    &s);
	if (rc != SQLITE_OK)
		return journal_errno(rc);
	sqlite3_bind_text(s, 1, j->cfg.boot_id, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, (sqlite3_int64)j->file.fs);
	sqlite3_bind_int64(s, 3, (sqlite3_int64)j->file.ino);
	sqlite3_bind_int64(s, 4, j->file.born_ns);
	sqlite3_bind_int64(s, 5, SYS(j->sys, now_wall) / 1000);
	mutex_lock(&j->commit_lock);
	if ((r = journal_txn_begin(j)) == 0)
		r = journal_txn_end(j, journal_run(s));
	if (r == 0)
		j->start = (uint64_t)sqlite3_last_insert_rowid(j->db);
	mark = journal_mark(j);
	mutex_unlock(&j->commit_lock);
	sqlite3_finalize(s);
	return r == 0 ? journal_flush_to(j, &mark) : r;
}

/* Runs a statement with REPO's columns as ?1 to ?4. *ID: the id in the answer,
 * or 0 without an answer. */
static int run_repo(struct journal *j, const char *sql,
    const struct journal_repo *repo, uint64_t *id)
{
	sqlite3_stmt *s = NULL;
	int rc;

	*id = 0;
	rc = journal_prepare(j->db, sql, &s);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_blob(s, 1, repo->uuid, sizeof(repo->uuid), SQLITE_STATIC);
	sqlite3_bind_text(s, 2, repo->path, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, (sqlite3_int64)repo->dev);
	sqlite3_bind_int64(s, 4, (sqlite3_int64)repo->ino);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		*id = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static const char find_repo[] = "SELECT id FROM repo"
				" WHERE uuid = ?1 AND path = ?2"
				" AND dev = ?3 AND ino = ?4";
static const char put_repo[] =
    "INSERT INTO repo(uuid, path, dev, ino) VALUES(?1, ?2, ?3, ?4)"
    " ON CONFLICT(uuid) DO UPDATE SET path = ?2, dev = ?3, ino = ?4"
    " RETURNING id";

int journal_put_repo(struct journal *j, struct journal_repo *repo)
{
	return run_repo(j, put_repo, repo, &repo->id);
}

int journal_register_repo(struct journal *j, struct journal_repo *repo)
{
	struct journal_mark mark;
	uint64_t id = 0;
	bool is_new = false;
	int r = JOURNAL_UNKNOWN;

	mutex_lock(&j->commit_lock);
	if (!journal_is_broken(j))
		r = journal_errno(run_repo(j, find_repo, repo, &id));
	if (r == 0 && id == 0 && (r = journal_txn_begin(j)) == 0) {
		r = journal_txn_end(j, run_repo(j, put_repo, repo, &id));
		is_new = r == 0;
	}
	mark = journal_mark(j);
	mutex_lock(&j->hand_lock);
	if (is_new) {
		j->counts.repos_written = mark.written;
		j->stats.repos++;
	}
	repo->epoch = mark.epoch;
	mutex_unlock(&j->hand_lock);
	mutex_unlock(&j->commit_lock);
	if (r == 0)
		repo->id = id;
	return r;
}

int journal_drop_deferred(struct journal *j, uint64_t repo, uint64_t *nr)
{
	struct journal_mark mark;
	int r, rc;

	mutex_lock(&j->commit_lock);
	if ((r = journal_txn_begin(j)) == 0) {
		rc = journal_query(j->db,
		    "DELETE FROM " JOURNAL_OPEN_DEFERRED " WHERE repo = ?",
		    repo, 0, NULL);
		*nr = (uint64_t)sqlite3_changes(j->db);
		r = journal_txn_end(j, rc);
	}
	mark = journal_mark(j);
	mutex_unlock(&j->commit_lock);
	return r == 0 ? journal_flush_to(j, &mark) : r;
}
