#include "daemon/group/service/session.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/lib/clock.h"

#define LEAST_VERSION 150000
#define PROOF_MS      1000
#define PROOF_STEP_US 2000
#define TICK_MS       100
#define GRACE_MS      1000 /* of a statement that was cancelled */
#define ANSWER_MOST   10000

/* A role or a database can have other values, so each session sets its own. */
static const char settings[] =
    "SET synchronous_commit = on;"
    "SET statement_timeout = 0;"
    "SET lock_timeout = 0;"
    "SET default_transaction_isolation = 'read committed';"
    "SET default_transaction_read_only = off;"
    "SET idle_in_transaction_session_timeout = '2s';"
    "SET idle_session_timeout = 0;"
    "SET client_min_messages = warning;"
    "SET search_path = pg_catalog;"
    /* PostgreSQL 17 and later have this timeout. */
    "SELECT set_config(name, '0', false) FROM pg_settings"
    " WHERE name = 'transaction_timeout'";

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
	text_done(&s->host);
	text_done(&s->hostaddr);
	text_done(&s->port);
}

/* Messages of libpq can have several lines, and the log has one for each
 * message. */
static void set_why(struct session *s, const char *why)
{
	size_t len;

	text_clear(&s->why);
	while (*(why += strspn(why, "\n\t"))) {
		len = strcspn(why, "\n");
		text_adds(&s->why, s->why.len > 0 ? "; " : "");
		text_add(&s->why, why, len);
		why += len;
	}
}

void session_fail(struct session *s, const PGresult *r, const char *what)
{
	const char *why = r ? PQresultErrorMessage(r) : "";

	if (!*why && s->conn)
		why = PQerrorMessage(s->conn);
	set_why(s, *why ? why : what);
	session_close(s);
}

/* ---- the order of the servers ---- */

static void set(struct text *to, const char *value)
{
	text_clear(to);
	if (value)
		text_adds(to, value);
}

/* "a,b,c" becomes "b,c,a". A list with one element stays. */
static void rotate(struct text *to, const char *list)
{
	const char *comma = strchr(list, ',');

	set(to, comma ? comma + 1 : list);
	if (comma) {
		text_addc(to, ',');
		text_add(to, list, (size_t)(comma - list));
	}
}

void session_distrust(struct session *s, const char *why)
{
	PQconninfoOption *options = s->conn ? PQconninfo(s->conn) : NULL, *o;

	for (o = options; o && o->keyword; o++) {
		if (!o->val)
			continue;
		if (!strcmp(o->keyword, "host"))
			rotate(&s->host, o->val);
		else if (!strcmp(o->keyword, "hostaddr"))
			rotate(&s->hostaddr, o->val);
		else if (!strcmp(o->keyword, "port"))
			rotate(&s->port, o->val);
	}
	PQconninfoFree(options);
	set_why(s, why);
	session_close(s);
}

/* ---- opening ---- */

/* group.database comes as dbname, and replaces the values before it. Empty
 * values replace nothing. */
static PGconn *connect(const struct session *s)
{
	static const char *const names[] = { "connect_timeout",
		"keepalives_idle", "keepalives_interval", "keepalives_count",
		"tcp_user_timeout", "target_session_attrs",
		"fallback_application_name", "dbname", "client_encoding",
		"host", "hostaddr", "port", NULL };
	const char *const values[] = { "2", "5", "2", "3", "10000", "primary",
		"refd-group", s->config->database, "UTF8", s->host.data,
		s->hostaddr.data, s->port.data, NULL };

	return PQconnectdbParams(names, values, 1);
}

static const char *remedy(const PGconn *conn)
{
	if (PQconnectionNeedsPassword(conn))
		return "PostgreSQL wants a password: put a line into ~/.pgpass "
		       "of this account, mode 0600";
	if (PQconnectionUsedPassword(conn))
		return "correct a wrong password in ~/.pgpass of this account, "
		       "or in the service file";
	return "refd-group(8), Connections, has the remedies";
}

/* libpq goes on with the next host only if it cannot reach a host, or the host
 * is a standby, and not after a wrong certificate. So the next attempt begins
 * with the next host. */
static void fail_to_connect(struct session *s)
{
	struct text why = { 0 };

	text_addf(&why, "%s\n%s", PQerrorMessage(s->conn), remedy(s->conn));
	session_distrust(s, why.data);
	text_done(&why);
}

static enum session_result wrong(struct session *s, const char *why)
{
	set_why(s, why);
	session_close(s);
	return SESSION_WRONG;
}

/* A pooler can send two statements to two servers, and the second would prove
 * nothing about the first. */
static enum session_result check_pooler(struct session *s)
{
	/* libpq forgets the id if the connection ends behind the answer. */
	uint64_t pid = (uint64_t)PQbackendPID(s->conn);
	PGresult *r = session_run(s, "SELECT pg_backend_pid()", NULL);
	bool is_same;

	if (!r)
		return SESSION_AWAY;
	is_same = session_number(r, 0, 0) == pid;
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
	s->conn = connect(s);
	if (!s->conn)
		die("out of memory");
	PQsetNoticeProcessor(s->conn, ignore_notice, NULL);
	if (PQstatus(s->conn) != CONNECTION_OK) {
		fail_to_connect(s);
		return SESSION_AWAY;
	}
	if (PQserverVersion(s->conn) < LEAST_VERSION)
		return wrong(s, "PostgreSQL 15 or later is necessary");
	if (!session_do(s, settings))
		return SESSION_AWAY;
	return check_pooler(s);
}

enum session_result session_open_beside(struct session *s,
    const struct session *from)
{
	set(&s->host, PQhost(from->conn));
	set(&s->hostaddr, PQhostaddr(from->conn));
	set(&s->port, PQport(from->conn));
	return session_open(s);
}

/* ---- waiting ---- */

static void *send_cancel(void *arg)
{
	PGcancel *c = arg;
	char why[256];

	PQcancel(c, why, sizeof(why));
	PQfreeCancel(c);
	return NULL;
}

/* Cancels a COMMIT that waits for the standbys, so that the server ends the
 * COMMIT and unlocks its rows. PQcancel() opens a connection, and blocks for
 * ten seconds if the machine of the server is lost. So a thread of its own
 * calls PQcancel(), and nobody waits for this thread. */
static void cancel(PGconn *conn)
{
	PGcancel *c = PQgetCancel(conn);
	pthread_t thread;

	cli_begin_threads();
	if (c && pthread_create(&thread, NULL, send_cancel, c) == 0)
		pthread_detach(thread);
	else
		PQfreeCancel(c);
}

static uint64_t answer_ms(const struct session *s)
{
	return s->config->lease_ms < ANSWER_MOST ? s->config->lease_ms :
						   ANSWER_MOST;
}

static void tell_late(struct session *s)
{
	char why[128];

	snprintf(why, sizeof(why),
	    "PostgreSQL has not answered within %llu ms: are its standbys away?",
	    (unsigned long long)answer_ms(s));
	session_distrust(s, why);
}

bool session_wait(struct session *s)
{
	struct pollfd fd = { .fd = PQsocket(s->conn), .events = POLLIN };
	uint64_t until = clock_now_ms() + answer_ms(s);
	bool is_over = false, is_unwanted;

	while (PQconsumeInput(s->conn) && PQisBusy(s->conn)) {
		poll(&fd, 1, TICK_MS);
		is_unwanted = !is_over && s->tick && s->tick(s->tick_arg);
		if (clock_now_ms() >= until || is_unwanted) {
			if (is_over)
				break;
			is_over = true;
			until = clock_now_ms() + GRACE_MS;
		}
		if (is_over)
			cancel(s->conn);
	}
	if (is_over)
		tell_late(s);
	return !is_over;
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

	if (!s->conn)
		return NULL;
	if (!p)
		p = &none;
	if (PQsendQueryParams(s->conn, sql, p->nr, NULL, p->values, p->lengths,
		p->formats, format))
		return session_finish(s);
	session_fail(s, NULL, "no connection");
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
	PGresult *r = NULL, *next;

	while (session_wait(s) && (next = PQgetResult(s->conn))) {
		PQclear(r);
		r = next;
	}
	if (s->conn && has_succeeded(r))
		return r;
	if (s->conn)
		session_fail(s, r, "no answer");
	PQclear(r);
	return NULL;
}

bool session_do(struct session *s, const char *sql)
{
	PGresult *r = NULL;

	if (s->conn && PQsendQuery(s->conn, sql))
		r = session_finish(s);
	else if (s->conn)
		session_fail(s, NULL, "no connection");
	PQclear(r);
	return r != NULL;
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

#define POSITION(copies, senders)                                              \
	"SELECT pg_current_wal_flush_lsn(), " copies " FROM " senders          \
	" WHERE sync_state IN ('sync', 'quorum')"                              \
	" AND flush_lsn >= pg_current_wal_flush_lsn()"

/* To count more than one copy, the names of the standbys are needed. The view
 * pg_stat_replication has them, but takes longer, because it reads all sessions
 * for them. One copy needs no names, so pg_stat_get_wal_senders() is enough. */
const char *session_position(const struct session *s)
{
	return s->config->copies > 1 ?
	    POSITION("count(DISTINCT application_name)",
		"pg_stat_replication") :
	    POSITION("least(count(*), 1)", "pg_stat_get_wal_senders()");
}

/* A standby that connects again can have two rows of one name, so different
 * names count. */
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
	char why[128];

	snprintf(why, sizeof(why),
	    "%llu of %llu standbys have flushed the position %s",
	    (unsigned long long)copies, (unsigned long long)s->config->copies,
	    position);
	session_distrust(s, why);
}

bool session_prove_position(struct session *s, const PGresult *r)
{
	uint64_t copies = session_number(r, 0, 1),
		 until = clock_now_ms() + PROOF_MS;
	const char *position = PQgetvalue(r, 0, 0);
	PGresult *again;

	while (copies < s->config->copies) {
		if (clock_now_ms() >= until) {
			tell_unproven(s, copies, position);
			return false;
		}
		again = count_copies(s, position);
		if (!again)
			return false;
		copies = session_number(again, 0, 0);
		PQclear(again);
		if (copies < s->config->copies)
			usleep(PROOF_STEP_US);
	}
	return true;
}

bool session_prove(struct session *s)
{
	PGresult *r = session_run(s, session_position(s), NULL);
	bool is_proven = r && session_prove_position(s, r);

	PQclear(r);
	return is_proven;
}
