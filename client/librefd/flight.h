/*
 * A request in flight, over as many connections as necessary.
 *
 *	UNSENT -> SENT -> ANSWERED
 *	  ^        \-> LOST -> ASKING -> ANSWERED
 *	  |              ^      |  ^ \
 *	  +- never-seen -|------+  |  v
 *	                 +---------+- PENDING
 *
 * LATER: this user or this repository has too much in the daemon, and the
 * daemon said when to come again. So the request is sent again at this time,
 * until its own deadline.
 *
 * LOST: the connection broke after the daemon may have received the whole
 * request, perhaps in an earlier flight (maybe_sent). So the request is not
 * sent again until the daemon answers that it never saw the request. A request
 * that was not sent completely, or that can be repeated safely (ping, look-up,
 * ...), goes back to UNSENT.
 *
 * A session ends with its connection, so a lost session, its abort, and a
 * commit that was not sent completely are OVER: nothing was done. But a commit
 * that may have arrived is LOST. Whatever is in flight beside such a commit (an
 * abort, or the same session sent again) is LOST, too, and so is each later
 * end, because the commit decides their outcome. If the daemon never saw the
 * session, all of them are OVER, too, and never sent again.
 *
 * One thread at a time; nothing blocks. Functions return 0 or a negative errno:
 * -ENOMEM; -EINVAL for a request that does not fit the protocol; -EPROTO for an
 * answer that does not fit the request.
 */
#ifndef CLIENT_LIBREFD_FLIGHT_H
#define CLIENT_LIBREFD_FLIGHT_H

#include "client/librefd/conn.h"
#include "proto/message.h"

enum flight_state {
	FLIGHT_UNSENT,
	FLIGHT_SENT,
	FLIGHT_LOST,
	FLIGHT_ASKING,
	FLIGHT_PENDING,
	FLIGHT_LATER, /* delayed; the daemon took nothing */
	FLIGHT_OVER,  /* ended with its connection */
	FLIGHT_ANSWERED
};

struct flight {
	struct refd_request *req; /* borrowed */
	enum flight_state state;
	uint64_t end; /* place of the last byte in the stream, plus 1 */
	uint64_t born_ms;
	uint64_t ask_at_ms; /* time of the next query (PENDING) or request
			       (LATER) */
	unsigned nap_ms;    /* between queries */
	bool was_sent;
	/* A session that is prepared already is sent once more. */
	bool is_again;
	int err; /* UNSENT: of the last attempt to send the request; 0: none */
	struct refd_answer ans; /* ANSWERED, until taken */
};

/* STATE: UNSENT, or LOST to ask first. IS_PREPARED: this connection has a
 * prepared session with the id. */
struct flight *refd_flight_new(struct refd_request *req,
    enum flight_state state, bool is_prepared);
void refd_flight_free(struct flight *f);

/* Queues the request on a new connection, or the query for its outcome. An
 * error means that the daemon does not have the request. Other requests must
 * not end with this error, so refd_flight_take() returns the error, too. */
int refd_flight_send(struct flight *f, struct refd_conn *conn);
/* The connection is lost. WRITTEN is the number of bytes that were sent on the
 * connection, or 0 if the server is known to have read none. IS_HELD: a session
 * with the id was prepared on the connection, and no commit of this session is
 * under way. */
void refd_flight_lost(struct flight *f, uint64_t written, bool is_held);
bool refd_flight_awaits(const struct flight *f, uint32_t request_id);
/* The longest answer to the request or to its query, in bytes. */
size_t refd_flight_answer_max(const struct flight *f);
/* Always takes over ANS. */
int refd_flight_answered(struct flight *f, struct refd_answer *ans,
    struct refd_conn *conn);
/* If the time has come, sends the query or the request; otherwise lowers *UNTIL
 * to this time. Errors as of refd_flight_send(). */
int refd_flight_ask_again(struct flight *f, struct refd_conn *conn,
    uint64_t *until);
/* Makes the final answer, because nothing more will be learnt, for the reason
 * ERR. If the request may have arrived, the outcome is unknown. Otherwise, if
 * the daemon is lost (-ECONNRESET) or denies this peer (-EPERM), the answer is
 * a refusal with the text WHY. Both results are 0. The result is ERR for any
 * other reason, and always for -EPROTO and for a request without an outcome. */
int refd_flight_abandon(const struct flight *f, int err, const char *why,
    struct refd_answer *ans);
/* Is it an answered session that holds its locks? */
bool refd_flight_is_prepared(const struct flight *f);
/* Does the answer tell the fate of the id? Then the session is forgotten here,
 * and a later end asks the daemon. */
bool refd_flight_has_ended_session(const struct flight *f);
/* Has the daemon refused this commit? Then nothing was done, and the session is
 * still prepared. */
bool refd_flight_is_refused_commit(const struct flight *f);
/* Is the outcome known? */
bool refd_flight_is_settled(const struct flight *f);
/* Returns 1 and the answer, once; 0 if there is none yet; an error only if the
 * daemon does not have the request, or has done nothing. */
int refd_flight_take(struct flight *f, struct refd_answer *ans);

#endif
