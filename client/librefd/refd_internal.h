/*
 * Shared by refd.c (requests), connect.c (connections) and receive.c (messages
 * of the daemon).
 *
 * One thread at a time. Functions return 0 or a negative errno; refd_error()
 * has the text.
 */
#ifndef CLIENT_LIBREFD_REFD_INTERNAL_H
#define CLIENT_LIBREFD_REFD_INTERNAL_H

#include "client/librefd/conn.h"
#include "client/librefd/flight.h"
#include "client/refd.h"

/* Before the second attempt to connect. */
#define NAP_MIN_MS 5

struct known_session {
	struct refd_txid id;
	enum {
		SESSION_HELD,
		SESSION_COMMITTING /* a commit was sent, and not refused */
	} state;
};

struct refd {
	char *path;
	bool is_guarded; /* refd_accept_only(): OWNER */
	uint32_t owner;
	struct refd_conn conn;
	struct refd_answer_decoder *dec;
	struct refd_hello hello;
	bool has_hello;
	enum refd_status refusal; /* of the last connection; REFD_OK: none */
	/* Owned; the sessions that are prepared on this connection. A session
	 * ends with its connection, so a commit must never be sent on another
	 * connection. The end of a session that is not in this list asks for
	 * the outcome first, because another struct refd may have prepared and
	 * committed the session. */
	struct known_session *sessions;
	size_t nr_sessions, sessions_size;
	struct flight *flights[REFD_REQUESTS_MAX];
	size_t nr_flights;
	uint32_t last_id;
	unsigned nap_ms;     /* before the next attempt to connect */
	unsigned nr_misfits; /* consecutive malformed answers */
	char error[512];
};

/* Sets the text of refd_error(). Returns ERR. */
int refd_fail(struct refd *r, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Assigns all received packets to their requests. */
int refd_take_packets(struct refd *r);
/* The errno if the daemon has turned this connection away, otherwise 0.
 * refd_error() already has the text. */
int refd_refusal_error(const struct refd *r);

/* NULL if the session is not known. */
struct known_session *refd_find_session(const struct refd *r,
    const struct refd_txid *id);

void refd_hang_up(struct refd *r);
/* After a lost connection: waits until the daemon serves again, and sends all
 * requests in flight again. Blocks until DEADLINE. -EPERM if the daemon denies
 * this peer, -ECONNRESET for every other reason. */
int refd_reconnect(struct refd *r, uint64_t deadline);
/* Blocks for a while, longer after each failure. */
void refd_back_off(struct refd *r, uint64_t deadline);

#endif
