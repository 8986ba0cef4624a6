/*
 * One client's connection: bytes in, requests out to its host; answers in,
 * bytes out.
 *
 *	OPEN -> FINISHING	it sent its last, or what can't be understood:
 *	     \			no more is read, what is in flight is answered
 *	      \-> GONE <-/	nothing more can be said to it
 *
 * What a client can make the daemon hold is bounded: reading stops while
 * CONN_OUT_HIGH bytes wait to be sent, or REFD_REQUESTS_MAX requests are in
 * flight; half-sent requests, decoded or not, share DECODING_MAX allocated
 * bytes, of which a user who has half leaves the last eighth to others. Answers
 * that wait to be taken, to questions of a line each, are bounded by CONN_OUT_MAX in the same way: who
 * takes none, or has half, is hung up on. A client that takes no
 * answer, or sends half a request and no more, for CONN_STALL_NS is hung up
 * on; one that is idle between requests may stay for ever.
 *
 * Loop thread; nothing blocks. libevent's callbacks read, decode, and put the
 * connection on the host's list; from its turn the host calls conn_service()
 * and, when that says so, conn_free(): nothing is freed in its own callback.
 */
#ifndef SERVER_CONN_H
#define SERVER_CONN_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "daemon/base/sys.h"
#include "daemon/store/txn.h"
#include "proto/message.h"

#define CONN_OUT_HIGH (1024 * 1024)
#define CONN_OUT_LOW  (256 * 1024)
/* Of all connections. */
#define CONN_OUT_MAX (4 * (size_t)REFD_TXN_BYTES_MAX)
/* So many requests of one connection are looked at before the others' turn. */
#define CONN_TURN_REQUESTS 16
#define CONN_STALL_NS      (60 * 1000000000LL)
#define DECODING_MAX       (4 * (size_t)REFD_TXN_BYTES_MAX)

struct conn;
TAILQ_HEAD(conn_list, conn);

/* What connections share; it outlives them. */
struct conn_host {
	struct event_base *base;
	const struct sys *sys; /* the clock */
	/* REQ was decoded: the host owns its content now, and calls
	 * conn_answer() for it once, at once or later. */
	void (*request)(void *arg, struct conn *conn, struct refd_request *req);
	/* CONN says no more, though it may still wait for answers. */
	void (*said_all)(void *arg, struct conn *conn);
	void *arg;
	size_t connections_max;
	/* There is something to do in this turn. */
	void (*touched)(void *arg);

	struct conn_list touched_conns;
	size_t decoding_bytes; /* allocated for half-sent requests, without
				  an even share of each connection */
	size_t out_bytes;      /* of answers that wait to be sent */
	uint64_t bytes_in, bytes_out;
	char *scratch; /* owned; what is read goes here first */
};

/* 0 or -ENOMEM. The fields above touched_conns are the caller's. */
int conn_host_init(struct conn_host *host);
void conn_host_done(struct conn_host *host);

/* What the connections of one user share. */
struct conn_user {
	size_t decoding_bytes, out_bytes; /* of the host's */
};

enum conn_state { CONN_OPEN, CONN_FINISHING, CONN_GONE };

struct conn {
	struct conn_host *host;
	int fd;
	enum conn_state state;
	struct txn_peer peer; /* owned */
	/* The caller's, until it is freed; NULL: may have all there is. */
	struct conn_user *user;
	bool is_admin; /* it came by the socket for that */
	struct event readable, writable;
	bool reads;  /* READABLE is added */
	bool choked; /* from OUT_HIGH down to OUT_LOW */
	bool held;   /* decoding stopped for want of room or of a turn, not
			of input */
	bool is_touched;

	struct pkt_buf out;
	size_t sent;           /* of out */
	bool is_in_answer;     /* out ends in the middle of one */
	uint32_t in_answer_to; /* which request's */
	struct pkt_buf behind; /* those that came meanwhile */
	size_t counted;        /* of both, in out_bytes */
	size_t in_flight;

	char *in; /* what could not be decoded yet; NULL: nothing */
	size_t in_len;
	struct refd_request_decoder *decoder; /* in the middle of a request */
	size_t shared_bytes;  /* of in and the decoder, in decoding_bytes */
	uint64_t nr_requests; /* decoded */

	int64_t heard_ns; /* last bytes of a half-sent request */
	int64_t taken_ns; /* last time the client took some of out */

	TAILQ_ENTRY(conn) entry;         /* the host's own */
	TAILQ_ENTRY(conn) touched_entry; /* in touched_conns */
};

/* Takes FD (non-blocking) and PEER's content over; NULL when out of memory,
 * and then it does not. Queues HELLO. */
struct conn *conn_new(struct conn_host *host, int fd, struct txn_peer *peer,
    const struct refd_hello *hello);
/* Hangs up. Nobody may answer it any more. */
void conn_free(struct conn *conn);

/* Queues the answer to a request in flight, or a part of it; of one answer
 * in parts at a time, but for those whose parts all come at once. */
void conn_answer(struct conn *conn, const struct refd_answer *ans);

/* Sends, and decodes what was left aside, or some of it: then it is touched
 * again. False: it is over, to be freed. */
bool conn_service(struct conn *conn);
/* Refuses or drops it if it stalled; drops it if it was half-closed, and is
 * closed by now. */
void conn_check(struct conn *conn, int64_t now_ns);

size_t conn_unsent(const struct conn *conn);

#endif
