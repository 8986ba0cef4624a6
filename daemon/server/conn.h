/*
 * The connection of one client: gives requests to its host, and sends answers.
 *
 *	OPEN -> FINISHING	The client has sent its last request, or bytes
 *	     \			that cannot be decoded. No more is read;
 *	      \-> GONE <-/	requests in flight are answered. GONE: nothing
 *				can be sent any more.
 *
 * The memory that a client can make the daemon hold is limited:
 * - Reading stops while CONN_OUT_HIGH bytes wait to be sent, or
 *   REFD_REQUESTS_MAX requests are in flight.
 * - Half-sent requests, decoded or not, share DECODING_MAX allocated bytes. A
 *   user who has half of them cannot use the last eighth.
 * - Answers that wait to be sent share CONN_OUT_MAX bytes in the same way. This
 *   limit matters for short questions with long answers. The daemon hangs up on
 *   a client that takes no answers, or whose user has half of the bytes.
 *
 * A client that takes no answer, or sends half a request and then nothing,
 * holds memory, so the daemon hangs up on this client after CONN_STALL_NS. A
 * client that is idle between requests may stay forever.
 *
 * Loop thread; nothing blocks. Callbacks of libevent read, decode, and put the
 * connection on the host's list. For a whole request the calls are
 * conn_readable() > take_input() > decode_packets() > take_packet() >
 * host.request(). conn_host_serve() then serves the list, and calls host.over()
 * for a connection that is over. A callback never frees its own connection.
 */
#ifndef SERVER_CONN_H
#define SERVER_CONN_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "daemon/base/key_values.h"
#include "daemon/base/sys.h"
#include "daemon/store/txn.h"
#include "proto/message.h"

#define CONN_OUT_HIGH (1024 * 1024)
#define CONN_OUT_LOW  (256 * 1024)
/* Answers of all connections that wait to be sent. */
#define CONN_OUT_MAX (4 * (size_t)REFD_TXN_BYTES_MAX)
/* After so many decoded requests of a connection, other connections have their
 * turn. */
#define CONN_TURN_REQUESTS 16
/* After so much time for the requests of a user, other users have their turn,
 * because some requests take longer than others, and a user may have a thousand
 * connections. */
#define CONN_USER_NS  (1000 * 1000LL)
#define CONN_STALL_NS (60 * 1000000000LL)
#define DECODING_MAX  (4 * (size_t)REFD_TXN_BYTES_MAX)

struct conn;
struct loop;
TAILQ_HEAD(conn_list, conn);

/* Shared by all connections, and outlives them. */
struct conn_host {
	struct event_base *base;
	const struct sys *sys; /* the clock */
	/* REQ is decoded, and the host owns its content. The host answers
	 * with conn_answer(), at once or later. In the daemon:
	 * requests_take(). */
	void (*request)(void *arg, struct conn *conn, struct refd_request *req);
	/* CONN sends no more requests, but may wait for answers. */
	void (*said_all)(void *arg, struct conn *conn);
	/* CONN is over: conn_free() follows. */
	void (*over)(void *arg, struct conn *conn);
	void *arg;
	size_t connections_max;
	/* loop_touched(): a connection on touched_conns has work. */
	void (*touched)(struct loop *loop);
	struct loop *loop;

	struct conn_list touched_conns;
	/* Allocated for half-sent requests, without the bytes of each
	 * connection up to an even share of DECODING_MAX. */
	size_t decoding_bytes;
	size_t out_bytes; /* of answers that wait to be sent */
	uint64_t turns;   /* of the loop */
	char *scratch;    /* owned; buffer for reading */
};

/* 0 or -ENOMEM. The fields above touched_conns are the caller's. */
int conn_host_init(struct conn_host *host);
void conn_host_done(struct conn_host *host);
/* Serves connections with work, for a limited time, because each turn of the
 * loop must also read other input. Each user has a share of the time. True:
 * work is left, and must be served in the next turn. */
bool conn_host_serve(struct conn_host *host);

/* Shared by the connections of one user. */
struct conn_user {
	size_t decoding_bytes, out_bytes; /* parts of the host's */
	uint64_t turn;   /* of the host, to which used_ns belongs */
	int64_t used_ns; /* for requests, in this turn */
};

enum conn_state { CONN_OPEN, CONN_FINISHING, CONN_GONE };

struct conn {
	struct conn_host *host;
	int fd;
	enum conn_state state;
	struct txn_peer peer; /* owned */
	/* Borrowed until conn_free(); NULL: no limits for this user. */
	struct conn_user *user;
	bool is_admin; /* came over the administrators' socket */
	struct event readable, writable;
	bool reads;  /* READABLE is added */
	bool choked; /* from OUT_HIGH down to OUT_LOW */
	bool held;   /* input is left, but no room or share to decode it */
	bool is_touched;

	struct pkt_buf out;
	size_t sent;           /* of out */
	bool is_in_answer;     /* out ends in the middle of an answer */
	uint32_t in_answer_to; /* request id of that answer */
	struct pkt_buf behind; /* answers to send after that answer */
	size_t counted;        /* bytes of out and behind in out_bytes */
	size_t in_flight;

	char *in; /* bytes that are not decoded yet; NULL: none */
	size_t in_len;
	struct refd_request_decoder *decoder; /* NULL: between requests */
	size_t shared_bytes;  /* part of in and decoder in decoding_bytes */
	uint64_t nr_requests; /* decoded */

	int64_t heard_ns; /* time of the last bytes received */
	int64_t taken_ns; /* last time that the client took output */

	TAILQ_ENTRY(conn) entry;         /* for the host's use */
	TAILQ_ENTRY(conn) touched_entry; /* in touched_conns */
};

/* Takes ownership of FD (non-blocking) and of PEER's content, and queues HELLO.
 * NULL when out of memory; the caller then keeps FD and PEER. */
struct conn *conn_new(struct conn_host *host, int fd, struct txn_peer *peer,
    const struct refd_hello *hello);
/* Hangs up. conn_answer() must not be called any more. */
void conn_free(struct conn *conn);

/* Queues the answer to a request in flight, or a part of the answer. The parts
 * of two answers must not mix. So while an answer has parts to come, every
 * other answer must come whole, or all its parts at once. OPAQUE is a struct
 * conn, whose type the scheduler does not know. */
void conn_answer(void *opaque, const struct refd_answer *ans);
/* Answers the request REQUEST_ID with KV, and empties KV. If KV lacks pairs for
 * want of memory, the answer is a refusal. */
void conn_answer_pairs(struct key_values *kv, struct conn *conn,
    uint32_t request_id);
/* Answers REQ with a refusal. */
void conn_refuse(struct conn *conn, const struct refd_request *req,
    enum refd_status status, const char *why);

/* Sends output, and decodes input that was held back. If input is left, the
 * connection goes on the host's list again. False: the connection is over; free
 * it. */
bool conn_service(struct conn *conn);
/* Refuses or drops the connection if its client has stalled. Drops a
 * half-closed connection whose client has closed the other half too. */
void conn_check(struct conn *conn, int64_t now_ns);

/* Bytes that wait to be sent, without answers behind an unfinished answer. */
size_t conn_unsent(const struct conn *conn);

#endif
