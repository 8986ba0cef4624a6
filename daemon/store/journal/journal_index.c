/*
 * History's index as a database: opened, begun anew, written, trimmed.
 *
 * Happy path: the index exists, is of this journal, and not ahead.
 *	write	BEGIN, the keys of some rows, the last indexed row, COMMIT. WAL
 *		with synchronous=NORMAL: only SQLite's own checkpoints, made by
 *		this connection, wait for the disk; a power loss costs the last
 *		transactions, whose rows are indexed again
 *
 * Failure modes:
 *	missing, not a database, of another schema or journal, ahead of the
 *	journal or with different rows	removed, begun anew
 *	damaged, found later		-EBADMSG: the same
 *	no room, an I/O error		the index stays behind; history reads
 *					the journal instead
 * One connection writes and makes the checkpoints, so the rule about SQLite's
 * WAL-reset bug (journal.h) holds.
 */
#include "daemon/store/journal/journal_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal_index_internal.h"

#define NAME           "history.db"
#define APPLICATION_ID 0x72656668 /* "refh" */
#define SCHEMA_VERSION 3
/* The rows of one span share an entry for time and size (as bits). */
#define SPAN_BITS 10
/* Keys deleted at once. */
#define TRIM_AT_ONCE "2000"

static const char schema[] =
    "CREATE TABLE meta(id INTEGER PRIMARY KEY, journal BLOB NOT NULL,"
    " last INTEGER NOT NULL, last_txid BLOB NOT NULL) STRICT;"
    "CREATE TABLE hit(segment INTEGER NOT NULL, key BLOB NOT NULL,"
    " lsn INTEGER NOT NULL, PRIMARY KEY(segment, key, lsn))"
    " WITHOUT ROWID, STRICT;"
    "CREATE TABLE span(nr INTEGER PRIMARY KEY, low_us INTEGER NOT NULL,"
    " high_us INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;";

static const char settings[] = "PRAGMA journal_mode=WAL;"
			       "PRAGMA synchronous=NORMAL;"
			       "PRAGMA wal_autocheckpoint=1000;"
			       "PRAGMA mmap_size=0;"
			       "PRAGMA temp_store=MEMORY;"
			       "PRAGMA cache_size=-16384;";

/* ---- opening ---- */

static int prepare_all(struct journal_index *x)
{
	static const char *const sql[] = {
		[INDEX_BEGIN] = "BEGIN IMMEDIATE",
		[INDEX_COMMIT] = "COMMIT",
		[INDEX_ROLLBACK] = "ROLLBACK",
		[INDEX_ADD] = "INSERT OR IGNORE INTO hit VALUES(?, ?, ?)",
		[INDEX_TIME] =
		    "INSERT INTO span VALUES(?1, ?2, ?2, ?3) ON CONFLICT(nr)"
		    " DO UPDATE SET low_us = min(low_us, ?2),"
		    " high_us = max(high_us, ?2), bytes = bytes + ?3",
		[INDEX_LAST] = "UPDATE meta SET last = ?, last_txid = ?",
		[INDEX_TRIM] =
		    "DELETE FROM hit WHERE (segment, key, lsn) IN"
		    " (SELECT segment, key, lsn FROM hit WHERE segment < ?"
		    " LIMIT " TRIM_AT_ONCE ")",
		[INDEX_TRIM_SPAN] = "DELETE FROM span WHERE nr < ?",
		[INDEX_UP] = "SELECT lsn FROM hit WHERE segment = ? AND key = ?"
			     " AND lsn > ? AND lsn < ? ORDER BY lsn LIMIT ?",
		[INDEX_DOWN] =
		    "SELECT lsn FROM hit WHERE segment = ? AND key = ?"
		    " AND lsn > ? AND lsn < ? ORDER BY lsn DESC LIMIT ?",
		[INDEX_EACH] =
		    "SELECT key, lsn FROM hit WHERE segment = ? AND key >= ?"
		    " AND key < ? AND lsn > ? AND lsn < ?",
		[INDEX_SINCE] = "SELECT min(nr) FROM span WHERE high_us >= ?",
		[INDEX_UNTIL] = "SELECT max(nr) FROM span WHERE low_us <= ?",
		[INDEX_BYTES] = "SELECT sum(bytes) FROM span",
	};
	size_t i;
	int rc = SQLITE_OK;

	for (i = 0; i < INDEX_STMTS && rc == SQLITE_OK; i++)
		rc = journal_prepare(x->db, sql[i], &x->stmts[i]);
	return rc;
}

static int ask_int(sqlite3 *db, const char *sql, int64_t *value)
{
	sqlite3_stmt *s = NULL;
	int rc;

	rc = journal_prepare(db, sql, &s);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		*value = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return rc == SQLITE_ROW ? 0 : -EBADMSG;
}

struct last_row {
	uint64_t lsn;
	struct refd_txid txid;
	bool is_there;
};

static int compare_last(void *arg, const struct journal_row *row)
{
	struct last_row *last = arg;

	last->is_there = refd_txid_eq(&row->txid, &last->txid);
	return 0;
}

/* Is the last indexed row a row of J? The row may have been trimmed. */
static int check_last(struct journal *j, struct last_row *last)
{
	struct journal_reader *reader;
	int r;

	if (last->lsn > journal_last_lsn(j))
		return -EBADMSG;
	if (last->lsn <= journal_trimmed(j))
		return 0;
	r = journal_reader_open(j, &reader);
	if (r != 0)
		return r;
	r = journal_read(reader, last->lsn - 1, last->lsn + 1, false, 1,
	    compare_last, last);
	journal_reader_close(reader);
	if (r != 0)
		return r < 0 ? r : -EIO;
	return last->is_there ? 0 : -EBADMSG;
}

static int check_meta(struct journal_index *x, struct journal *j)
{
	struct last_row last = { .is_there = false };
	sqlite3_stmt *s = NULL;
	int r = -EBADMSG;

	if (journal_prepare(x->db, "SELECT journal, last, last_txid FROM meta",
		&s) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW && sqlite3_column_bytes(s, 0) == 16 &&
	    memcmp(sqlite3_column_blob(s, 0), journal_uuid(j), 16) == 0 &&
	    sqlite3_column_bytes(s, 2) == sizeof(last.txid.bytes)) {
		last.lsn = (uint64_t)sqlite3_column_int64(s, 1);
		memcpy(last.txid.bytes, sqlite3_column_blob(s, 2),
		    sizeof(last.txid.bytes));
		r = 0;
	}
	sqlite3_finalize(s);
	x->last = last.lsn;
	if (r == 0 && last.lsn > 0)
		r = check_last(j, &last);
	return r;
}

static int check_identity(struct journal_index *x, struct journal *j)
{
	int64_t app = 0, version = 0;
	int r;

	r = ask_int(x->db, "PRAGMA application_id", &app);
	if (r == 0)
		r = ask_int(x->db, "PRAGMA user_version", &version);
	if (r == 0 && (app != APPLICATION_ID || version != SCHEMA_VERSION))
		r = -EBADMSG;
	return r == 0 ? check_meta(x, j) : r;
}

static int create_schema(struct journal_index *x, struct journal *j)
{
	char ids[128];
	sqlite3_stmt *s = NULL;
	int rc;

	snprintf(ids, sizeof(ids),
	    "PRAGMA application_id=%d; PRAGMA user_version=%d;", APPLICATION_ID,
	    SCHEMA_VERSION);
	rc = sqlite3_exec(x->db, "BEGIN", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(x->db, ids, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(x->db, schema, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = journal_prepare(x->db,
		    "INSERT INTO meta VALUES(1, ?, 0, zeroblob(16))", &s);
	if (rc == SQLITE_OK) {
		sqlite3_bind_blob(s, 1, journal_uuid(j), 16, SQLITE_STATIC);
		rc = journal_run(s);
	}
	sqlite3_finalize(s);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(x->db, "COMMIT", NULL, NULL, NULL);
	x->last = 0;
	return journal_errno(rc);
}

static void disconnect(struct journal_index *x)
{
	size_t i;

	for (i = 0; i < INDEX_STMTS; i++) {
		sqlite3_finalize(x->stmts[i]);
		x->stmts[i] = NULL;
	}
	sqlite3_close(x->db);
	x->db = NULL;
}

static int connect_db(struct journal_index *x, int flags)
{
	int rc;

	rc = sqlite3_open_v2(x->path, &x->db,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | flags, NULL);
	if (x->db == NULL)
		return SQLITE_NOMEM;
	sqlite3_extended_result_codes(x->db, 1);
	return rc == SQLITE_OK ?
	    sqlite3_exec(x->db, settings, NULL, NULL, NULL) :
	    rc;
}

static void remove_files(struct journal_index *x)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char *path;
	size_t i;

	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (asprintf(&path, "%s%s", x->path, suffixes[i]) < 0)
			continue;
		SYS(x->sys, unlinkat, SYS_TRUSTED, path);
		free(path);
	}
}

/* The file has names of all repositories. */
static int make_file(struct journal_index *x)
{
	int fd;

	fd = SYS(x->sys, openat, SYS_TRUSTED, x->path,
	    O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return fd;
	SYS(x->sys, close, fd);
	return 0;
}

static int begin_anew(struct journal_index *x, struct journal *j)
{
	int r;

	disconnect(x);
	remove_files(x);
	r = make_file(x);
	if (r == 0)
		r = journal_errno(connect_db(x, 0));
	return r == 0 ? create_schema(x, j) : r;
}

int journal_index_open(const struct sys *sys, const char *dir,
    struct journal *j, struct journal_index **index, bool *anew)
{
	struct journal_index *x = calloc(1, sizeof(*x));
	int r;

	if (x == NULL)
		return -ENOMEM;
	x->sys = sys;
	if (asprintf(&x->path, "%s/" NAME, dir) < 0) {
		free(x);
		return -ENOMEM;
	}
	*anew = false;
	r = connect_db(x, 0) == SQLITE_OK ? check_identity(x, j) : -EBADMSG;
	if (r == -EBADMSG) {
		*anew = true;
		r = begin_anew(x, j);
	}
	if (r == 0)
		r = journal_errno(prepare_all(x));
	if (r == 0)
		*index = x;
	else
		journal_index_close(x);
	return r;
}

void journal_index_close(struct journal_index *x)
{
	if (x == NULL)
		return;
	disconnect(x);
	free(x->path);
	free(x);
}

void journal_index_discard(struct journal_index *x)
{
	disconnect(x);
	remove_files(x);
	journal_index_close(x);
}

uint64_t journal_index_last(const struct journal_index *x)
{
	return x->last;
}

/* ---- writing ---- */

int journal_index_begin(struct journal_index *x)
{
	return journal_errno(journal_run(x->stmts[INDEX_BEGIN]));
}

int journal_index_add(struct journal_index *x, const struct journal_key *key,
    uint64_t lsn)
{
	sqlite3_bind_int64(x->stmts[INDEX_ADD], 1, journal_index_segment(lsn));
	sqlite3_bind_blob(x->stmts[INDEX_ADD], 2, key->bytes, (int)key->len,
	    SQLITE_STATIC);
	sqlite3_bind_int64(x->stmts[INDEX_ADD], 3, (sqlite3_int64)lsn);
	return journal_errno(journal_run(x->stmts[INDEX_ADD]));
}

int journal_index_span(struct journal_index *x, uint64_t lsn, int64_t time_us,
    uint64_t bytes)
{
	sqlite3_bind_int64(x->stmts[INDEX_TIME], 1,
	    (sqlite3_int64)(lsn >> SPAN_BITS));
	sqlite3_bind_int64(x->stmts[INDEX_TIME], 2, time_us);
	sqlite3_bind_int64(x->stmts[INDEX_TIME], 3, (sqlite3_int64)bytes);
	return journal_errno(journal_run(x->stmts[INDEX_TIME]));
}

int journal_index_end(struct journal_index *x, const struct journal_row *row)
{
	int rc;

	sqlite3_bind_int64(x->stmts[INDEX_LAST], 1, (sqlite3_int64)row->lsn);
	sqlite3_bind_blob(x->stmts[INDEX_LAST], 2, row->txid.bytes,
	    sizeof(row->txid.bytes), SQLITE_STATIC);
	rc = journal_run(x->stmts[INDEX_LAST]);
	if (rc == SQLITE_OK)
		rc = journal_run(x->stmts[INDEX_COMMIT]);
	if (rc == SQLITE_OK)
		x->last = row->lsn;
	else
		journal_index_cancel(x);
	return journal_errno(rc);
}

void journal_index_cancel(struct journal_index *x)
{
	if (!sqlite3_get_autocommit(x->db))
		journal_run(x->stmts[INDEX_ROLLBACK]);
}

int journal_index_trim(struct journal_index *x, uint64_t lsn)
{
	int rc;

	sqlite3_bind_int64(x->stmts[INDEX_TRIM_SPAN], 1,
	    (sqlite3_int64)(lsn >> SPAN_BITS));
	rc = journal_run(x->stmts[INDEX_TRIM_SPAN]);
	sqlite3_bind_int64(x->stmts[INDEX_TRIM], 1, journal_index_segment(lsn));
	if (rc == SQLITE_OK)
		rc = journal_run(x->stmts[INDEX_TRIM]);
	if (rc != SQLITE_OK)
		return journal_errno(rc);
	return sqlite3_changes(x->db) > 0;
}

int journal_index_bytes(struct journal_index *x, uint64_t *bytes)
{
	sqlite3_stmt *s = x->stmts[INDEX_BYTES];
	int rc = sqlite3_step(s);

	if (rc == SQLITE_ROW)
		*bytes = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return rc == SQLITE_ROW ? 0 : journal_errno(rc);
}

/* ---- times ---- */

/* NULL: no such span. */
static int ask_span(sqlite3_stmt *s, int64_t us, bool *has, uint64_t *nr)
{
	int rc;

	sqlite3_bind_int64(s, 1, us);
	rc = sqlite3_step(s);
	*has = rc == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL;
	if (*has)
		*nr = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return rc == SQLITE_ROW ? 0 : journal_errno(rc);
}

int journal_index_between(struct journal_index *x, int64_t since_us,
    int64_t until_us, uint64_t *after, uint64_t *before)
{
	uint64_t nr, lsn;
	bool has;
	int r = 0;

	if (since_us > 0) {
		r = ask_span(x->stmts[INDEX_SINCE], since_us, &has, &nr);
		lsn = has ? nr << SPAN_BITS : x->last + 1;
		if (r == 0 && lsn > 0 && lsn - 1 > *after)
			*after = lsn - 1;
	}
	if (r == 0 && until_us < INT64_MAX) {
		r = ask_span(x->stmts[INDEX_UNTIL], until_us, &has, &nr);
		lsn = has ? (nr + 1) << SPAN_BITS : 0;
		if (r == 0 && lsn < *before)
			*before = lsn;
	}
	return r;
}
