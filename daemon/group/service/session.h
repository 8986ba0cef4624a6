/*
 * One connection to PostgreSQL, and the proof that the standbys have a commit
 * (docs/group-internals.md). One thread at a time; every call blocks.
 *
 *	CLOSED -> session_open -> OPEN -> any failure, session_close -> CLOSED
 *
 * A failed statement closes the session, so no transaction stays open. The
 * state of the database is then not known. A statement whose answer takes
 * longer than group.lease, or 10 s, has failed, because COMMIT may wait for
 * standbys that now belong to another server. The statement is cancelled,
 * because otherwise the server would keep its session.
 */
#ifndef GROUP_SERVICE_SESSION_H
#define GROUP_SERVICE_SESSION_H

#include <libpq-fe.h>

#include "daemon/group/service/group_config.h"
#include "daemon/group/service/params.h"

/* Called about every 100 ms, while a statement waits for its answer. True:
 * cancel the statement, which has then failed. */
typedef bool session_tick_fn(void *arg);

struct session {
	const struct group_config *config; /* borrowed */
	const char *machine;   /* borrowed; NULL in commands (group_log.h) */
	PGconn *conn;          /* NULL: closed */
	struct text why;       /* the last failure */
	session_tick_fn *tick; /* can be NULL */
	void *tick_arg;
	/* Lists of servers that replace the lists of group.database. Empty: the
	 * lists of group.database count. */
	struct text host, hostaddr, port;
};

enum session_result {
	SESSION_OK,
	SESSION_AWAY, /* a later attempt may succeed */
	SESSION_WRONG /* the administrator must change something */
};

/* Closes and opens the session, with settings that a role or a database could
 * set differently. WRONG: an old PostgreSQL, or a pooler. */
enum session_result session_open(struct session *s);
/* The same, on the server of FROM, which is open. */
enum session_result session_open_beside(struct session *s,
    const struct session *from);
void session_close(struct session *s);
void session_done(struct session *s);

/* Closes S, with PQerrorMessage() or the message of R, or else WHAT as the
 * reason. */
void session_fail(struct session *s, const PGresult *r, const char *what);
/* Closes S because of WHY. The server may be a former primary, so the next
 * session_open() begins with the next host of group.database. */
void session_distrust(struct session *s, const char *why);

/* Runs a statement. The caller frees the result. NULL: failed, S is closed. */
PGresult *session_run(struct session *s, const char *sql,
    const struct params *p);
/* The same, with a result in the binary format. */
PGresult *session_run_binary(struct session *s, const char *sql,
    const struct params *p);
/* Waits until PQgetResult() does not block. False: failed, S is closed. */
bool session_wait(struct session *s);
/* The result of a statement that was sent. NULL: failed, S is closed. */
PGresult *session_finish(struct session *s);
/* Runs a statement without a result. */
bool session_do(struct session *s, const char *sql);
/* Runs a statement that changes rows. The number of rows, or -1. */
long session_change(struct session *s, const char *sql, const struct params *p);

/* Asks for the position behind all commits of S, and how many standbys have
 * flushed it. */
const char *session_position(const struct session *s);
/*
 * Waits at most a second until group.copies standbys have flushed every commit
 * that S has acknowledged before. True: these commits, and all that S has read
 * before its last commit, stay after the loss of the primary. False: not
 * known; S is closed.
 */
bool session_prove(struct session *s);
/* The same for the result R of session_position(). */
bool session_prove_position(struct session *s, const PGresult *r);

/* A number of a text result. */
uint64_t session_number(const PGresult *r, int row, int column);

#endif
