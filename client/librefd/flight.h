/*
 * One request on its way, over as many connections as it takes.
 *
 *	UNSENT -> SENT -> ANSWERED
 *	  ^        \-> LOST -> ASKING -> ANSWERED
 *	  |              ^      |  ^ \
 *	  +- never-seen -|------+  |  v
 *	                 +---------+- PENDING
 *
 * LATER: the daemon has too much of this user's, or of this repository's, and
 * says when to come again: by then it is sent again, until its own deadline.
 *
 * LOST: the connection broke after the daemon may have seen all of it, so it
 * is not sent again until the daemon says that it never saw it. A request of
 * which not every byte had left, or that can be repeated without harm (ping,
 * look-up, ...), goes back to UNSENT.
 *
 * What is held by a connection ends with it: a session that was lost, its
 * abort, and a commit of which not every byte had left, are OVER (nothing was
 * done). Only a commit that may have arrived is LOST; when it was never seen
 * it is OVER too, and never sent again.
 *
 * One thread at a time; nothing blocks. 0 or a negative errno: -ENOMEM;
 * -EINVAL for a request the protocol can't carry; -EPROTO for an answer that
 * is not one to this request.
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
	FLIGHT_LATER, /* put off; nothing of it was taken */
	FLIGHT_OVER,  /* its connection ended and took it along */
	FLIGHT_ANSWERED
};

struct flight {
	struct refd_request *req; /* borrowed */
	enum flight_state state;
	uint64_t end; /* its last byte's place in the stream, plus 1 */
	uint64_t born_ms;
	uint64_t ask_at_ms; /* PENDING: when to ask again; LATER: to send */
	unsigned nap_ms;    /* between questions */
	bool was_sent;
	struct refd_answer ans; /* ANSWERED, until taken */
};

struct flight *refd_flight_new(struct refd_request *req);
void refd_flight_free(struct flight *f);

/* Queues what has to be said on a connection that knows nothing of it: the
 * request, or the question what became of it. */
int refd_flight_send(struct flight *f, struct refd_conn *conn);
/* The connection is gone; WRITTEN bytes had left on it. 0 also where it is
 * known that the server read none of them. */
void refd_flight_lost(struct flight *f, uint64_t written);
bool refd_flight_awaits(const struct flight *f, uint32_t request_id);
/* Takes ANS over, whatever it returns. */
int refd_flight_answered(struct flight *f, struct refd_answer *ans,
    struct refd_conn *conn);
/* Asks if it is time; else lowers *UNTIL to when it will be. */
int refd_flight_ask_again(struct flight *f, struct refd_conn *conn,
    uint64_t *until);
/* What is to be said when nothing more can be learnt, because the daemon is
 * lost (ERR is -ECONNRESET) or denies this peer (-EPERM); WHY is for what
 * can't have arrived. Any other ERR is returned. */
int refd_flight_abandon(const struct flight *f, int err, const char *why,
    struct refd_answer *ans);
/* A session, answered, that holds its locks. */
bool refd_flight_is_prepared(const struct flight *f);
/* Has what there is to be known of it. */
bool refd_flight_is_settled(const struct flight *f);
/* 1 and the answer, once; 0: there is none yet; -ENOMEM. */
int refd_flight_take(struct flight *f, struct refd_answer *ans);

#endif
