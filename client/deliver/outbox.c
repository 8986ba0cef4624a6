#include "client/deliver/outbox.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUSY_MS 30000
#define VERSION "1"

/* A row of `change` is a dead letter if died_ms is set. Positions in the feed
 * are lsn and nr of PROTOCOL.md, "History". A million rows must not delay the
 * start, so the service then reads only the index "waiting". */
/* Deletes the changes of forgotten endpoints, when a service starts. An older
 * service may still know a forgotten endpoint and add changes for it. So no new
 * endpoint ever gets the number of a forgotten endpoint. */
static const char unowned[] =
    "DELETE FROM change WHERE seq IN (SELECT seq FROM change WHERE"
    " died_ms IS NULL AND endpoint NOT IN (SELECT id FROM endpoint));"
    "DELETE FROM change WHERE seq IN (SELECT seq FROM change WHERE"
    " died_ms IS NOT NULL AND endpoint NOT IN (SELECT id FROM endpoint));";
static const char schema[] =
    "PRAGMA journal_mode=WAL;"
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS endpoint("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " journal BLOB, lsn INTEGER NOT NULL DEFAULT 0,"
    " nr INTEGER NOT NULL DEFAULT 0,"
    " delivered INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,"
    " died INTEGER NOT NULL DEFAULT 0, gaps INTEGER NOT NULL DEFAULT 0,"
    " took_ms INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE IF NOT EXISTS change("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, endpoint INTEGER NOT NULL,"
    " repo BLOB NOT NULL, id TEXT NOT NULL, event TEXT NOT NULL,"
    " body BLOB NOT NULL, len INTEGER NOT NULL, time_ms INTEGER NOT NULL,"
    " failures INTEGER NOT NULL DEFAULT 0, error TEXT, died_ms INTEGER);"
    "CREATE INDEX IF NOT EXISTS waiting ON"
    " change(endpoint, repo, seq, len, time_ms, died_ms)"
    " WHERE died_ms IS NULL;"
    "CREATE INDEX IF NOT EXISTS dead ON change(endpoint, id)"
    " WHERE died_ms IS NOT NULL;"
    "PRAGMA user_version=" VERSION ";"
    "COMMIT;";

enum query {
	BEGIN,
	COMMIT,
	DATA_VERSION,
	ENDPOINT_ADD,
	ENDPOINT_FIND,
	ENDPOINT_MOVE,
	ADD,
	ADD_COUNT,
	HEAD,
	DELETE_ROW,
	DELIVERED_COUNT,
	FAIL,
	FAIL_COUNT,
	STREAMS,
	COUNTS,
	DEAD,
	RETRY,
	DROP,
	FORGET_ROWS,
	FORGET,
	NR_QUERIES
};

#define OF_NAME "endpoint=(SELECT id FROM endpoint WHERE name=?1)"
#define OF_DEAD OF_NAME " AND died_ms IS NOT NULL AND (?2 IS NULL OR id=?2)"

static const char *const texts[NR_QUERIES] = {
	[BEGIN] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
	[DATA_VERSION] = "PRAGMA data_version",
	[ENDPOINT_ADD] = "INSERT OR IGNORE INTO endpoint(name) VALUES(?1)",
	[ENDPOINT_FIND] =
	    "SELECT id, journal, lsn, nr FROM endpoint WHERE name=?1",
	[ENDPOINT_MOVE] =
	    "UPDATE endpoint SET journal=?2, lsn=?3, nr=?4 WHERE id=?1",
	[ADD] = "INSERT INTO change(endpoint, repo, id, event, body, len,"
		" time_ms) VALUES(?1, ?2, ?3, ?4, ?5, length(?5), ?6)",
	[ADD_COUNT] = "UPDATE endpoint SET gaps=gaps+1 WHERE id=?1",
	[HEAD] = "SELECT seq, id, event, repo, body, failures, time_ms"
		 " FROM change WHERE endpoint=?1 AND repo=?2"
		 " AND died_ms IS NULL ORDER BY seq LIMIT 1",
	[DELETE_ROW] = "DELETE FROM change WHERE seq=?1",
	[DELIVERED_COUNT] = "UPDATE endpoint SET delivered=delivered+1,"
			    " took_ms=took_ms+?2 WHERE id=?1",
	[FAIL] = "UPDATE change SET failures=failures+1, error=?2, died_ms=?3"
		 " WHERE seq=?1",
	[FAIL_COUNT] = "UPDATE endpoint SET failed=failed+1, died=died+?2"
		       " WHERE id=?1",
	[STREAMS] = "SELECT endpoint, repo, count(*), sum(len) FROM change"
		    " WHERE died_ms IS NULL GROUP BY endpoint, repo",
	[COUNTS] = "SELECT id, name, journal, lsn, nr, delivered, failed, died,"
		   " gaps, took_ms, ifnull(d.n, 0), ifnull(w.n, 0),"
		   " ifnull(w.len, 0), ifnull(w.first, 0) FROM endpoint"
		   " LEFT JOIN (SELECT endpoint, count(*) AS n,"
		   " sum(len) AS len, min(time_ms) AS first FROM change"
		   " WHERE died_ms IS NULL GROUP BY endpoint) AS w"
		   " ON w.endpoint=id"
		   " LEFT JOIN (SELECT endpoint, count(*) AS n FROM change"
		   " WHERE died_ms IS NOT NULL GROUP BY endpoint) AS d"
		   " ON d.endpoint=id ORDER BY name",
	[DEAD] = "SELECT seq, c.id, event, repo, body, failures, time_ms,"
		 " died_ms, ifnull(error,''), name FROM change AS c"
		 " JOIN endpoint AS e ON c.endpoint=e.id"
		 " WHERE died_ms IS NOT NULL AND (?1 IS NULL OR name=?1)"
		 " ORDER BY name, seq",
	[RETRY] = "UPDATE change SET died_ms=NULL WHERE " OF_DEAD,
	[DROP] = "DELETE FROM change WHERE " OF_DEAD,
	[FORGET_ROWS] = "DELETE FROM change WHERE " OF_NAME,
	[FORGET] = "DELETE FROM endpoint WHERE name=?1",
};

struct outbox {
	sqlite3 *db;
	sqlite3_stmt *queries[NR_QUERIES];
	int64_t version; /* PRAGMA data_version */
};

static void __attribute__((noreturn)) fail(struct outbox *o)
{
	die("the state of refd-deliver: %s", sqlite3_errmsg(o->db));
}

/* ---- queries ---- */

static sqlite3_stmt *query(struct outbox *o, enum query q)
{
	if (!o->queries[q] &&
	    sqlite3_prepare_v3(o->db, texts[q], -1, SQLITE_PREPARE_PERSISTENT,
		&o->queries[q], NULL) != SQLITE_OK)
		fail(o);
	return o->queries[q];
}

static void bind_number(struct outbox *o, sqlite3_stmt *s, int at, uint64_t n)
{
	if (sqlite3_bind_int64(s, at, (sqlite3_int64)n) != SQLITE_OK)
		fail(o);
}

/* NULL is SQL's NULL. */
static void bind_text(struct outbox *o, sqlite3_stmt *s, int at,
    const char *text)
{
	if (sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC) != SQLITE_OK)
		fail(o);
}

static void bind_bytes(struct outbox *o, sqlite3_stmt *s, int at,
    const void *data, size_t len)
{
	/* A NULL pointer would be SQL's NULL. */
	if (sqlite3_bind_blob64(s, at, len ? data : "", len, SQLITE_STATIC) !=
	    SQLITE_OK)
		fail(o);
}

/* False: no more rows, and the query is ready for the next call. */
static bool step(struct outbox *o, sqlite3_stmt *s)
{
	int r = sqlite3_step(s);

	if (r == SQLITE_ROW)
		return true;
	if (r != SQLITE_DONE)
		fail(o);
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return false;
}

static void run(struct outbox *o, enum query q)
{
	while (step(o, query(o, q)))
		;
}

static uint64_t number(sqlite3_stmt *s, int at)
{
	return (uint64_t)sqlite3_column_int64(s, at);
}

static char *copy(sqlite3_stmt *s, int at, size_t *size)
{
	const void *data = sqlite3_column_blob(s, at);
	size_t len = (size_t)sqlite3_column_bytes(s, at);
	char *to = xrealloc(NULL, len + 1);

	if (len)
		memcpy(to, data, len);
	to[len] = '\0';
	if (size)
		*size = len;
	return to;
}

static void get_position(sqlite3_stmt *s, int at, struct outbox_position *p)
{
	memset(p, 0, sizeof(*p));
	if (sqlite3_column_bytes(s, at) != REFD_JOURNAL_ID_BYTES)
		return;
	p->is_known = true;
	memcpy(p->journal, sqlite3_column_blob(s, at), REFD_JOURNAL_ID_BYTES);
	p->at.lsn = number(s, at + 1);
	p->at.nr = (uint32_t)number(s, at + 2);
}

/* ---- the database ---- */

static void run_script(struct outbox *o, const char *script)
{
	if (sqlite3_exec(o->db, script, NULL, NULL, NULL) != SQLITE_OK)
		fail(o);
}

static int user_version(struct outbox *o)
{
	sqlite3_stmt *s = NULL;
	int version;

	if (sqlite3_prepare_v2(o->db, "PRAGMA user_version", -1, &s, NULL) !=
		SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		fail(o);
	version = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	return version;
}

struct outbox *outbox_open(const char *dir, bool may_create)
{
	char *path = xasprintf("%s/deliver.db", dir);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, version;
	struct outbox *o;

	if (may_create)
		flags |= SQLITE_OPEN_CREATE;
	else if (access(path, F_OK) < 0)
		die("cannot open '%s': %s%s", path, strerror(errno),
		    errno == ENOENT ?
			". The service 'refd deliver' has not run here yet: "
			"refd-deliver(8) describes its configuration and its "
			"start" :
			"");
	o = xcalloc(1, sizeof(*o));
	if (sqlite3_open_v2(path, &o->db, flags, NULL) != SQLITE_OK)
		die("cannot open '%s': %s", path,
		    o->db ? sqlite3_errmsg(o->db) : "out of memory");
	sqlite3_busy_timeout(o->db, BUSY_MS);
	run_script(o, "PRAGMA synchronous=FULL");
	version = user_version(o);
	if (version == 0 && may_create)
		run_script(o, schema);
	else if (version != atoi(VERSION))
		die("'%s' is of another version of refd-deliver", path);
	if (may_create)
		run_script(o, unowned);
	free(path);
	outbox_changed(o);
	return o;
}

void outbox_close(struct outbox *o)
{
	size_t i;

	if (!o)
		return;
	for (i = 0; i < NR_QUERIES; i++)
		sqlite3_finalize(o->queries[i]);
	sqlite3_close(o->db);
	free(o);
}

void outbox_begin(struct outbox *o)
{
	run(o, BEGIN);
}

void outbox_commit(struct outbox *o)
{
	run(o, COMMIT);
}

bool outbox_changed(struct outbox *o)
{
	sqlite3_stmt *s = query(o, DATA_VERSION);
	int64_t before = o->version;

	while (step(o, s))
		o->version = sqlite3_column_int64(s, 0);
	return o->version != before;
}

/* ---- of the service ---- */

int64_t outbox_endpoint(struct outbox *o, const char *name,
    struct outbox_position *position)
{
	sqlite3_stmt *s = query(o, ENDPOINT_ADD);
	int64_t id = 0;

	bind_text(o, s, 1, name);
	step(o, s);
	s = query(o, ENDPOINT_FIND);
	bind_text(o, s, 1, name);
	while (step(o, s)) {
		id = sqlite3_column_int64(s, 0);
		get_position(s, 1, position);
	}
	return id;
}

void outbox_move(struct outbox *o, int64_t endpoint,
    const struct outbox_position *to)
{
	sqlite3_stmt *s = query(o, ENDPOINT_MOVE);

	bind_number(o, s, 1, (uint64_t)endpoint);
	bind_bytes(o, s, 2, to->journal, sizeof(to->journal));
	bind_number(o, s, 3, to->at.lsn);
	bind_number(o, s, 4, to->at.nr);
	step(o, s);
}

void outbox_add(struct outbox *o, int64_t endpoint,
    const struct outbox_row *row)
{
	sqlite3_stmt *s = query(o, ADD);

	bind_number(o, s, 1, (uint64_t)endpoint);
	bind_bytes(o, s, 2, row->repo, strlen(row->repo));
	bind_text(o, s, 3, row->id);
	bind_text(o, s, 4, row->event);
	bind_bytes(o, s, 5, row->body, row->len);
	bind_number(o, s, 6, row->time_ms);
	step(o, s);
	if (strcmp(row->event, "gap") != 0)
		return;
	s = query(o, ADD_COUNT);
	bind_number(o, s, 1, (uint64_t)endpoint);
	step(o, s);
}

static void get_row(sqlite3_stmt *s, struct outbox_row *row)
{
	*row = (struct outbox_row){ .seq = sqlite3_column_int64(s, 0),
		.id = copy(s, 1, NULL),
		.event = copy(s, 2, NULL),
		.repo = copy(s, 3, NULL),
		.failures = number(s, 5),
		.time_ms = number(s, 6) };
	row->body = copy(s, 4, &row->len);
}

bool outbox_head(struct outbox *o, int64_t endpoint, const char *repo,
    struct outbox_row *row)
{
	sqlite3_stmt *s = query(o, HEAD);
	bool found = false;

	bind_number(o, s, 1, (uint64_t)endpoint);
	bind_bytes(o, s, 2, repo, strlen(repo));
	while (step(o, s)) {
		get_row(s, row);
		found = true;
	}
	return found;
}

void outbox_row_done(struct outbox_row *row)
{
	free(row->endpoint);
	free(row->id);
	free(row->event);
	free(row->repo);
	free(row->body);
	free(row->error);
	memset(row, 0, sizeof(*row));
}

void outbox_delivered(struct outbox *o, int64_t endpoint, int64_t seq,
    uint64_t took_ms)
{
	sqlite3_stmt *s = query(o, DELETE_ROW);

	bind_number(o, s, 1, (uint64_t)seq);
	step(o, s);
	s = query(o, DELIVERED_COUNT);
	bind_number(o, s, 1, (uint64_t)endpoint);
	bind_number(o, s, 2, took_ms);
	step(o, s);
}

void outbox_failed(struct outbox *o, int64_t endpoint, int64_t seq,
    const char *error, uint64_t died_ms)
{
	sqlite3_stmt *s = query(o, FAIL);

	bind_number(o, s, 1, (uint64_t)seq);
	bind_text(o, s, 2, error);
	if (died_ms)
		bind_number(o, s, 3, died_ms);
	step(o, s);
	s = query(o, FAIL_COUNT);
	bind_number(o, s, 1, (uint64_t)endpoint);
	bind_number(o, s, 2, died_ms != 0);
	step(o, s);
}

void outbox_each_stream(struct outbox *o, outbox_stream_fn *fn, void *arg)
{
	sqlite3_stmt *s = query(o, STREAMS);
	char *repo;

	while (step(o, s)) {
		repo = copy(s, 1, NULL);
		fn(arg, sqlite3_column_int64(s, 0), repo, number(s, 2),
		    number(s, 3));
		free(repo);
	}
}

/* ---- of the administrator ---- */

void outbox_each_endpoint(struct outbox *o, outbox_counts_fn *fn, void *arg)
{
	sqlite3_stmt *s = query(o, COUNTS);
	struct outbox_counts c;
	char *name;

	while (step(o, s)) {
		name = copy(s, 1, NULL);
		c = (struct outbox_counts){ .endpoint =
						sqlite3_column_int64(s, 0),
			.name = name,
			.delivered = number(s, 5),
			.failed = number(s, 6),
			.died = number(s, 7),
			.gaps = number(s, 8),
			.took_ms = number(s, 9),
			.dead = number(s, 10),
			.waiting = number(s, 11),
			.waiting_bytes = number(s, 12),
			.oldest_ms = number(s, 13) };
		get_position(s, 2, &c.position);
		fn(arg, &c);
		free(name);
	}
}

void outbox_each_dead(struct outbox *o, const char *name, outbox_row_fn *fn,
    void *arg)
{
	sqlite3_stmt *s = query(o, DEAD);
	struct outbox_row row;

	bind_text(o, s, 1, name);
	while (step(o, s)) {
		get_row(s, &row);
		row.died_ms = number(s, 7);
		row.error = copy(s, 8, NULL);
		row.endpoint = copy(s, 9, NULL);
		fn(arg, &row);
		outbox_row_done(&row);
	}
}

static uint64_t change_dead(struct outbox *o, enum query q, const char *name,
    const char *id)
{
	sqlite3_stmt *s = query(o, q);

	bind_text(o, s, 1, name);
	bind_text(o, s, 2, id);
	step(o, s);
	return (uint64_t)sqlite3_changes(o->db);
}

uint64_t outbox_retry(struct outbox *o, const char *name, const char *id)
{
	return change_dead(o, RETRY, name, id);
}

uint64_t outbox_drop(struct outbox *o, const char *name, const char *id)
{
	return change_dead(o, DROP, name, id);
}

void outbox_forget(struct outbox *o, const char *name)
{
	sqlite3_stmt *s = query(o, FORGET_ROWS);

	bind_text(o, s, 1, name);
	step(o, s);
	s = query(o, FORGET);
	bind_text(o, s, 1, name);
	step(o, s);
}
