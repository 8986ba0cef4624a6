/*
 * History's index as a database: opened, begun anew, written, trimmed.
 * journal_find.c searches it.
 *
 * Happy path: the index exists, is of this journal, and not ahead.
 *	write	BEGIN, the entries of some rows, the last indexed row, COMMIT.
 *		WAL with synchronous=NORMAL: only SQLite's own checkpoints, made
 *		by this connection, wait for the disk; a power loss costs the
 *		last transactions, whose rows are indexed again
 *
 * Failure modes:
 *	missing, not a database, of another version or journal, ahead of the
 *	journal or with different rows	removed, begun anew
 *	damaged, found later		-EBADMSG, and then removed and begun
 *					anew, too
 *	no room, an I/O error		the index stays behind; questions about
 *					the rows behind it fail
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

#define NAME    "history.db"
#define VERSION "7"

/*
 * The first column of the two tables that find records is a part of the LSN
 * (segment_of()), because otherwise each insertion would go to a different
 * page, and trimming would leave most pages half empty.
 *
 * Questions can be about one repository or about all, so a ref is in two trees:
 * with the repository, and without. The sources of a record are its uid, the
 * texts of its identities, and its repository (journal_index_source()).
 */
static const char schema[] =
    "CREATE TABLE meta(version INTEGER NOT NULL, journal BLOB NOT NULL,"
    " last INTEGER NOT NULL, last_txid BLOB NOT NULL,"
    " chain_lsn INTEGER NOT NULL, chain BLOB NOT NULL) STRICT;"
    "CREATE TABLE change(segment INTEGER NOT NULL, repo INTEGER NOT NULL,"
    " ref TEXT NOT NULL, lsn INTEGER NOT NULL,"
    " PRIMARY KEY(segment, repo, ref, lsn)) WITHOUT ROWID, STRICT;"
    "CREATE INDEX change_anywhere ON change(segment, ref, lsn);"
    "CREATE TABLE source(segment INTEGER NOT NULL, source ANY NOT NULL,"
    " lsn INTEGER NOT NULL,"
    " PRIMARY KEY(segment, source, lsn)) WITHOUT ROWID, STRICT;"
    "CREATE TABLE damaged(lsn INTEGER PRIMARY KEY) STRICT;"
    "CREATE TABLE span(nr INTEGER PRIMARY KEY, low_us INTEGER NOT NULL,"
    " high_us INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;";

static const char settings[] = "PRAGMA journal_mode=WAL;"
			       "PRAGMA synchronous=NORMAL;"
			       "PRAGMA wal_autocheckpoint=1000;"
			       "PRAGMA mmap_size=0;"
			       "PRAGMA temp_store=MEMORY;"
			       "PRAGMA cache_size=-16384;";

/* ---- opening ---- */

/* Two SQL texts for trimming. OLD() reads some old entries of a table, and
 * DELETE() deletes one entry. A single statement for both would read a whole
 * segment each time. */
#define OLD(table, columns)                                                    \
	"SELECT " columns " FROM " table                                       \
	" NOT INDEXED WHERE segment < ? LIMIT 1000"
#define DELETE(table, columns, values)                                         \
	"DELETE FROM " table " NOT INDEXED WHERE (" columns ") = (" values ")"

static int prepare_all(struct journal_index *x)
{
	static const char *const sql[] = {
		[INDEX_BEGIN] = "BEGIN IMMEDIATE",
		[INDEX_COMMIT] = "COMMIT",
		[INDEX_ROLLBACK] = "ROLLBACK",
		[INDEX_SOURCE] = "INSERT OR IGNORE INTO source VALUES(?, ?, ?)",
		[INDEX_CHANGE] =
		    "INSERT OR IGNORE INTO change VALUES(?, ?, ?, ?)",
		[INDEX_DAMAGED] = "INSERT OR IGNORE INTO damaged VALUES(?)",
		[INDEX_TIME] =
		    "INSERT INTO span VALUES(?1, ?2, ?2, ?3) ON CONFLICT(nr)"
		    " DO UPDATE SET low_us = min(low_us, ?2),"
		    " high_us = max(high_us, ?2), bytes = bytes + ?3",
		[INDEX_LAST] = "UPDATE meta SET last = ?, last_txid = ?,"
			       " chain_lsn = ?, chain = ?",
		[INDEX_OLD_CHANGE] = OLD("change", "segment, repo, ref, lsn"),
		[INDEX_OLD_SOURCE] = OLD("source", "segment, source, lsn"),
		[INDEX_DELETE_CHANGE] =
		    DELETE("change", "segment, repo, ref, lsn", "?, ?, ?, ?"),
		[INDEX_DELETE_SOURCE] =
		    DELETE("source", "segment, source, lsn", "?, ?, ?"),
		[INDEX_TRIM_DAMAGED] = "DELETE FROM damaged WHERE lsn <= ?",
		[INDEX_TRIM_SPAN] = "DELETE FROM span WHERE nr < ?",
		[INDEX_SINCE] = "SELECT min(nr) FROM span WHERE high_us >= ?",
		[INDEX_UNTIL] = "SELECT max(nr) FROM span WHERE low_us <= ?",
		[INDEX_BYTES] = "SELECT sum(bytes) FROM span",
	};
	size_t i;
	int rc;

	rc = journal_index_search_prepare(x);
	for (i = 0; i < INDEX_STMTS && rc == SQLITE_OK; i++)
		rc = journal_prepare(x->db, sql[i], &x->stmts[i]);
	return rc;
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

/* Is the last indexed row a row of J? A trimmed row cannot be compared, so the
 * answer is yes. */
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
	/* A damaged row says nothing about the index, so the index stays. */
	if (r == -EUCLEAN || r == -EBADMSG)
		return 0;
	if (r != 0)
		return r < 0 ? r : -EIO;
	return last->is_there ? 0 : -EBADMSG;
}

/* Reads the row of meta. The index of an older release has no row with this
 * version, or no column for the version, so the result is -EBADMSG. */
static int check_meta(struct journal_index *x, struct journal *j)
{
	struct last_row last = { .is_there = false };
	sqlite3_stmt *s = NULL;
	int rc, r = -EBADMSG;

	rc = journal_prepare(x->db,
	    "SELECT last, last_txid, chain_lsn, chain FROM meta"
	    " WHERE version = " VERSION " AND journal = ?",
	    &s);
	if (rc == SQLITE_OK) {
		sqlite3_bind_blob(s, 1, journal_uuid(j), 16, SQLITE_STATIC);
		rc = sqlite3_step(s);
		if (rc == SQLITE_ROW &&
		    sqlite3_column_bytes(s, 1) == sizeof(last.txid.bytes) &&
		    sqlite3_column_bytes(s, 3) == sizeof(x->chain.digest)) {
			last.lsn = (uint64_t)sqlite3_column_int64(s, 0);
			memcpy(last.txid.bytes, sqlite3_column_blob(s, 1),
			    sizeof(last.txid.bytes));
			x->chain.lsn = (uint64_t)sqlite3_column_int64(s, 2);
			memcpy(x->chain.digest, sqlite3_column_blob(s, 3),
			    sizeof(x->chain.digest));
			r = 0;
		}
	}
	/* A lack of memory, for example, says nothing about the index, so the
	 * index is not begun anew. */
	if (rc != SQLITE_ROW && rc != SQLITE_DONE && rc != SQLITE_ERROR)
		r = journal_errno(rc);
	sqlite3_finalize(s);
	x->last = last.lsn;
	if (r == 0 && last.lsn > 0)
		r = check_last(j, &last);
	return r;
}

static int create_schema(struct journal_index *x, struct journal *j)
{
	sqlite3_stmt *s = NULL;
	int rc;

	rc = sqlite3_exec(x->db, "BEGIN", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(x->db, schema, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = journal_prepare(x->db,
		    "INSERT INTO meta VALUES(" VERSION ", ?, 0, zeroblob(16),"
		    " 0, zeroblob(32))",
		    &s);
	if (rc == SQLITE_OK) {
		sqlite3_bind_blob(s, 1, journal_uuid(j), 16, SQLITE_STATIC);
		rc = journal_run(s);
	}
	sqlite3_finalize(s);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(x->db, "COMMIT", NULL, NULL, NULL);
	x->last = 0;
	memset(&x->chain, 0, sizeof(x->chain));
	return journal_errno(rc);
}

static void disconnect(struct journal_index *x)
{
	journal_index_search_done(x);
	memset(x->stmts, 0, sizeof(x->stmts));
	journal_disconnect(&x->db);
}

static int connect_db(struct journal_index *x)
{
	int rc;

	rc = sqlite3_open_v2(x->path, &x->db,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, "unix-excl");
	if (x->db == NULL)
		return SQLITE_NOMEM;
	sqlite3_extended_result_codes(x->db, 1);
	return rc == SQLITE_OK ?
	    sqlite3_exec(x->db, settings, NULL, NULL, NULL) :
	    rc;
}

static void remove_files(struct journal_index *x)
{
	static const char *const suffixes[] = { "", "-wal" };
	char *path;
	size_t i;

	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (asprintf(&path, "%s%s", x->path, suffixes[i]) < 0)
			continue;
		SYS(x->sys, unlinkat, SYS_TRUSTED, path);
		free(path);
	}
}

/* Makes an empty file, unless the file exists. The index has names of all
 * repositories, so only the daemon's account may read the file. */
static int make_file(struct journal_index *x)
{
	int fd;

	fd = SYS(x->sys, openat, SYS_TRUSTED, x->path, O_RDWR | O_CREAT, 0600);
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
		r = journal_errno(connect_db(x));
	return r == 0 ? create_schema(x, j) : r;
}

int journal_index_open(const struct sys *sys, const char *dir,
    struct journal *j, struct journal_index **index)
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
	r = make_file(x);
	if (r == 0)
		r = journal_errno(connect_db(x));
	if (r == 0)
		r = check_meta(x, j);
	if (r == -EBADMSG)
		r = begin_anew(x, j);
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

const struct journal_chain *journal_index_chain(const struct journal_index *x)
{
	return &x->chain;
}

/* ---- writing ---- */

static int run_with(sqlite3_stmt *s, uint64_t number)
{
	sqlite3_bind_int64(s, 1, (sqlite3_int64)number);
	return journal_run(s);
}

int journal_index_begin(struct journal_index *x)
{
	return journal_errno(journal_run(x->stmts[INDEX_BEGIN]));
}

static sqlite3_int64 segment_of(uint64_t lsn)
{
	return (sqlite3_int64)(lsn >> JOURNAL_INDEX_SEGMENT_BITS);
}

/* The second parameter, the source, is bound. */
static int add_source(struct journal_index *x, uint64_t lsn)
{
	sqlite3_stmt *s = x->stmts[INDEX_SOURCE];

	sqlite3_bind_int64(s, 1, segment_of(lsn));
	sqlite3_bind_int64(s, 3, (sqlite3_int64)lsn);
	return journal_run(s);
}

static int add_to_span(struct journal_index *x, const struct journal_row *row,
    uint64_t bytes)
{
	sqlite3_stmt *s = x->stmts[INDEX_TIME];

	sqlite3_bind_int64(s, 1,
	    (sqlite3_int64)(row->lsn >> JOURNAL_INDEX_SPAN_BITS));
	sqlite3_bind_int64(s, 2, row->time_us);
	sqlite3_bind_int64(s, 3, (sqlite3_int64)bytes);
	return journal_run(s);
}

int journal_index_add(struct journal_index *x, const struct journal_row *row,
    uint64_t bytes)
{
	int rc;

	sqlite3_bind_int64(x->stmts[INDEX_SOURCE], 2,
	    journal_index_source(row->repo));
	rc = add_source(x, row->lsn);
	sqlite3_bind_int64(x->stmts[INDEX_SOURCE], 2, row->uid);
	if (rc == SQLITE_OK)
		rc = add_source(x, row->lsn);
	if (rc == SQLITE_OK)
		rc = add_to_span(x, row, bytes);
	return journal_errno(rc);
}

int journal_index_add_user(struct journal_index *x,
    const struct journal_row *row, const char *user, size_t len)
{
	sqlite3_bind_text(x->stmts[INDEX_SOURCE], 2, user, (int)len,
	    SQLITE_STATIC);
	return journal_errno(add_source(x, row->lsn));
}

int journal_index_add_ref(struct journal_index *x,
    const struct journal_row *row, const char *ref)
{
	sqlite3_stmt *s = x->stmts[INDEX_CHANGE];

	sqlite3_bind_int64(s, 1, segment_of(row->lsn));
	sqlite3_bind_int64(s, 2, (sqlite3_int64)row->repo);
	sqlite3_bind_text(s, 3, ref, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 4, (sqlite3_int64)row->lsn);
	return journal_errno(journal_run(s));
}

int journal_index_end(struct journal_index *x, const struct journal_row *row,
    const struct journal_chain *chain)
{
	sqlite3_stmt *s = x->stmts[INDEX_LAST];
	int rc;

	sqlite3_bind_int64(s, 1, (sqlite3_int64)row->lsn);
	sqlite3_bind_blob(s, 2, row->txid.bytes, sizeof(row->txid.bytes),
	    SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, (sqlite3_int64)chain->lsn);
	sqlite3_bind_blob(s, 4, chain->digest, sizeof(chain->digest),
	    SQLITE_STATIC);
	rc = journal_run(s);
	if (rc == SQLITE_OK)
		rc = journal_run(x->stmts[INDEX_COMMIT]);
	if (rc == SQLITE_OK) {
		x->last = row->lsn;
		x->chain = *chain;
	} else {
		journal_index_cancel(x);
	}
	return journal_errno(rc);
}

void journal_index_cancel(struct journal_index *x)
{
	if (!sqlite3_get_autocommit(x->db))
		journal_run(x->stmts[INDEX_ROLLBACK]);
}

int journal_index_add_damaged(struct journal_index *x, uint64_t lsn)
{
	return journal_errno(run_with(x->stmts[INDEX_DAMAGED], lsn));
}

static int delete_one(sqlite3_stmt *old, sqlite3_stmt *delete)
{
	int i;

	for (i = 0; i < sqlite3_column_count(old); i++)
		sqlite3_bind_value(delete, i + 1, sqlite3_column_value(old, i));
	return journal_run(delete);
}

static int delete_some(sqlite3_stmt *old, sqlite3_stmt *delete, uint64_t lsn,
    bool *more)
{
	int rc;

	sqlite3_bind_int64(old, 1, segment_of(lsn));
	while ((rc = sqlite3_step(old)) == SQLITE_ROW) {
		*more = true;
		rc = delete_one(old, delete);
		if (rc != SQLITE_OK)
			break;
	}
	sqlite3_reset(old);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int journal_index_trim(struct journal_index *x, uint64_t lsn)
{
	bool more = false;
	int i, rc;

	rc = journal_run(x->stmts[INDEX_BEGIN]);
	if (rc == SQLITE_OK)
		rc = run_with(x->stmts[INDEX_TRIM_SPAN],
		    lsn >> JOURNAL_INDEX_SPAN_BITS);
	if (rc == SQLITE_OK)
		rc = run_with(x->stmts[INDEX_TRIM_DAMAGED], lsn);
	for (i = 0; i < 2 && rc == SQLITE_OK; i++)
		rc = delete_some(x->stmts[INDEX_OLD_CHANGE + i],
		    x->stmts[INDEX_DELETE_CHANGE + i], lsn, &more);
	if (rc == SQLITE_OK)
		rc = journal_run(x->stmts[INDEX_COMMIT]);
	if (rc == SQLITE_OK)
		return more;
	journal_index_cancel(x);
	return journal_errno(rc);
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
