/*
 * SQLite alone, with the settings that its manual recommends for durable data:
 * WAL and synchronous=FULL, and checkpoints at the default times. A client is a
 * connection, and waits for locks in SQLite's own way.
 */
#include <sqlite3.h>
#include <string.h>

#include "proto/lib/cli.h"
#include "tests/bench/peer.h"

#define PATIENCE_MS 60000

struct sqlite_user {
	const struct peer *peer;
	unsigned client;
	sqlite3 *db;
	sqlite3_stmt *begin, *put, *commit;
};

static void run_sql(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die("%s: %s", sql, sqlite3_errmsg(db));
}

static sqlite3 *connect_to(const char *path)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, PATIENCE_MS);
	run_sql(db, "PRAGMA journal_mode=WAL");
	run_sql(db, "PRAGMA synchronous=FULL");
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		die("%s: %s", sql, sqlite3_errmsg(db));
	return stmt;
}

static void *user_open(void *arg, unsigned client)
{
	struct sqlite_user *u = xcalloc(1, sizeof(*u));

	u->peer = arg;
	u->client = client;
	u->db = connect_to(u->peer->path);
	u->begin = prepare(u->db, "BEGIN IMMEDIATE");
	u->put = prepare(u->db,
	    "INSERT INTO ref VALUES (?1, ?2)"
	    " ON CONFLICT (name) DO UPDATE SET value = ?2");
	u->commit = prepare(u->db, "COMMIT");
	return u;
}

static bool step(sqlite3_stmt *stmt)
{
	int rc = sqlite3_step(stmt);

	sqlite3_reset(stmt);
	return rc == SQLITE_DONE;
}

static bool put(struct sqlite_user *u, unsigned nr, unsigned i)
{
	const struct job *job = u->peer->job;
	char name[JOB_NAME_MAX];

	job_name(job, u->client, nr, i, name);
	sqlite3_bind_text(u->put, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_blob(u->put, 2, job_value(job, nr)->bytes, REFD_SHA1_BYTES,
	    SQLITE_STATIC);
	return step(u->put);
}

static enum load_outcome user_transaction(void *opened, unsigned nr)
{
	struct sqlite_user *u = opened;
	bool good = step(u->begin);
	unsigned i;

	for (i = 0; good && i < u->peer->job->refs; i++)
		good = put(u, nr, i);
	if (good && step(u->commit))
		return LOAD_DONE;
	if (!sqlite3_get_autocommit(u->db))
		run_sql(u->db, "ROLLBACK");
	return LOAD_FAILED;
}

/* Avoids a checkpoint when the last client closes, because this checkpoint is
 * not measured. */
static void user_close(void *opened)
{
	struct sqlite_user *u = opened;

	sqlite3_db_config(u->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_finalize(u->begin);
	sqlite3_finalize(u->put);
	sqlite3_finalize(u->commit);
	sqlite3_close(u->db);
}

/* The database must not be open here while the processes are made. The first
 * commit after the creation of the WAL also flushes its header, which is not
 * measured either. */
struct load_contestant peer_sqlite(struct peer *p)
{
	sqlite3 *db = connect_to(p->path);

	run_sql(db,
	    "CREATE TABLE ref (name TEXT PRIMARY KEY, value BLOB)"
	    " WITHOUT ROWID");
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_close(db);
	return (struct load_contestant){ .arg = p,
		.open = user_open,
		.transaction = user_transaction,
		.close = user_close };
}
