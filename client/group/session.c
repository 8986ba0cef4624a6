#include "client/group/session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/librefd/conn.h"

#define LEAST_VERSION 150000
#define PROOF_MS      1000
#define PROOF_STEP_US 2000

/* A role or a database can have other values. */
static const char settings[] =
    "SET synchronous_commit = on;"
    "SET statement_timeout = 0;"
    "SET lock_timeout = 0;"
    "SET default_transaction_isolation = 'read committed';"
    "SET default_transaction_read_only = off;"
    "SET idle_in_transaction_session_timeout = '2s';"
    "SET idle_session_timeout = 0;"
    "SET client_min_messages = warning;"
    "SET search_path = pg_catalog";

static void ignore_notice(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

void session_close(struct session *s)
{
	PQfinish(s->conn);
	s->conn = NULL;
}

void session_done(struct session *s)
{
	session_close(s);
	text_done(&s->why);
}

static void set_why(struct session *s, const char *why)
{
	text_clear(&s->why);
	text_adds(&s->why, why);
	while (s->why.len > 0 && s->why.data[s->why.len - 1] == '\n')
		s->why.data[--s->why.len] = '\0';
}

void session_fail(struct session *s, const PGresult *r, const char *what)
{
	const char *why = r ? PQresultErrorMessage(r) : "";

	if (!*why && s->conn)
		why = PQerrorMessage(s->conn);
	set_why(s, *why ? why : what);
	session_close(s);
}

/* ---- opening ---- */

/* group.database comes as dbname, and replaces the values before it. */
static PGconn *connect(const struct group_config *config)
{
	static const char *const names[] = { "connect_timeout",
		"keepalives_idle", "keepalives_interval", "keepalives_count",
		"tcp_user_timeout", "target_session_attrs",
		"fallback_application_name", "dbname", "client_encoding",
		NULL };
	const char *const values[] = { "2", "5", "2", "3", "10000", "primary",
		"refd-group", config->database, "UTF8", NULL };

	return PQconnectdbParams(names, values, 1);
}

static enum session_result wrong(struct session *s, const char *why)
{
	set_why(s, why);
	session_close(s);
	return SESSION_WRONG;
}

/* A pooler can send two statements to two servers. */
static enum session_result check_pooler(struct session *s)
{
	PGresult *r = session_run(s, "SELECT pg_backend_pid()", NULL);
	bool is_same;

	if (!r)
		return SESSION_AWAY;
	is_same = session_number(r, 0, 0) == (uint64_t)PQbackendPID(s->conn);
	PQclear(r);
	return is_same ? SESSION_OK :
			 wrong(s,
			     "a pooler stands between refd-group and "
			     "PostgreSQL: let group.database name PostgreSQL "
			     "itself");
}

enum session_result session_open(struct session *s)
{
	session_close(s);
	s->conn = connect(s->config);
	if (!s->conn)
		die("out of memory");
	PQsetNoticeProcessor(s->conn, ignore_notice, NULL);
	if (PQstatus(s->conn) != CONNECTION_OK) {
		session_fail(s, NULL, "no connection");
		return SESSION_AWAY;
	}
	if (PQserverVersion(s->conn) < LEAST_VERSION)
		return wrong(s, "PostgreSQL 15 or later is necessary");
	if (!session_do(s, settings))
		return SESSION_AWAY;
	return check_pooler(s);
}

/* ---- statements ---- */

static bool has_succeeded(const PGresult *r)
{
	return PQresultStatus(r) == PGRES_TUPLES_OK ||
	    PQresultStatus(r) == PGRES_COMMAND_OK;
}

static PGresult *run(struct session *s, const char *sql, const struct params *p,
    int format)
{
	static const struct params none;
	PGresult *r;

	if (!s->conn)
		return NULL;
	if (!p)
		p = &none;
	r = PQexecParams(s->conn, sql, p->nr, NULL, p->values, p->lengths,
	    p->formats, format);
	if (has_succeeded(r))
		return r;
	session_fail(s, r, "no answer");
	PQclear(r);
	return NULL;
}

PGresult *session_run(struct session *s, const char *sql,
    const struct params *p)
{
	return run(s, sql, p, 0);
}

PGresult *session_run_binary(struct session *s, const char *sql,
    const struct params *p)
{
	return run(s, sql, p, 1);
}

PGresult *session_finish(struct session *s)
{
	PGresult *r = PQgetResult(s->conn), *next;

	while ((next = PQgetResult(s->conn))) {
		PQclear(r);
		r = next;
	}
	if (has_succeeded(r))
		return r;
	session_fail(s, r, "no answer");
	PQclear(r);
	return NULL;
}

bool session_do(struct session *s, const char *sql)
{
	PGresult *r = s->conn ? PQexec(s->conn, sql) : NULL;
	bool is_done = s->conn && has_succeeded(r);

	if (s->conn && !is_done)
		session_fail(s, r, "no answer");
	PQclear(r);
	return is_done;
}

long session_change(struct session *s, const char *sql, const struct params *p)
{
	PGresult *r = session_run(s, sql, p);
	long changed = r ? strtol(PQcmdTuples(r), NULL, 10) : -1;

	PQclear(r);
	return changed;
}

uint64_t session_number(const PGresult *r, int row, int column)
{
	return strtoull(PQgetvalue(r, row, column), NULL, 10);
}

/* ---- the proof ---- */

static PGresult *count_copies(struct session *s, const char *position)
{
	struct params p = { 0 };

	params_text(&p, position);
	return session_run(s,
	    "SELECT count(DISTINCT application_name) FROM pg_stat_replication"
	    " WHERE sync_state IN ('sync', 'quorum')"
	    " AND flush_lsn >= $1::pg_lsn",
	    &p);
}

static void tell_unproven(struct session *s, uint64_t copies,
    const char *position)
{
	text_clear(&s->why);
	text_addf(&s->why, "%llu of %llu standbys have flushed the position %s",
	    (unsigned long long)copies, (unsigned long long)s->config->copies,
	    position);
}

bool session_prove_position(struct session *s, const PGresult *r)
{
	uint64_t copies = session_number(r, 0, 1),
		 until = refd_now_ms() + PROOF_MS;
	const char *position = PQgetvalue(r, 0, 0);
	PGresult *again;

	while (copies < s->config->copies) {
		if (refd_now_ms() >= until) {
			tell_unproven(s, copies, position);
			return false;
		}
		usleep(PROOF_STEP_US);
		again = count_copies(s, position);
		if (!again)
			return false;
		copies = session_number(again, 0, 0);
		PQclear(again);
	}
	return true;
}

bool session_prove(struct session *s)
{
	PGresult *r = session_run(s, SESSION_POSITION, NULL);
	bool is_proven = r && session_prove_position(s, r);

	PQclear(r);
	return is_proven;
}
