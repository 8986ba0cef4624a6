/*
 * One connection of the daemon (daemon/server/conn) over a socketpair, for the
 * tests of conn. The host answers only on command, and the clock stands still.
 * There is one rig at a time, in `conn_rig`.
 */
#ifndef TESTS_LIB_CONN_RIG_H
#define TESTS_LIB_CONN_RIG_H

#include "daemon/server/conn.h"

#define CONN_RIG_ASKED_MAX  2048
#define CONN_RIG_CLIENT_MAX (4 * 1024 * 1024)
#define CONN_RIG_SECOND_NS  1000000000LL
/* The first number and the size of conn_rig_flood()'s pings. */
#define CONN_RIG_FLOOD_FROM  100000
#define CONN_RIG_FLOOD_BYTES 19

struct conn_rig {
	struct event_base *base;
	struct sys sys;
	int64_t clock_ns;
	struct conn_host host;
	struct conn *conn; /* NULL: the connection is over */
	int client;        /* the client's end */
	bool answers_at_once;
	int64_t request_ns; /* the host takes so long for a request */
	bool has_said_all;  /* said_all() was called */

	/* Requests that the host has not answered. */
	struct refd_request asked[CONN_RIG_ASKED_MAX];
	size_t nr_asked;

	/* Bytes that the client has read and not decoded. */
	char *got;
	size_t got_len;
	bool at_end;

	size_t flooded; /* bytes of pings sent */
};
extern struct conn_rig conn_rig;

/* A transaction of two updates, as it goes over the wire. */
extern const char conn_rig_transaction[];
extern const size_t conn_rig_transaction_len;

/* The client has read hello. */
void conn_rig_setup(void);
void conn_rig_teardown(void);

/* Runs the loop until nothing more happens. Returns false if the connection is
 * over and freed. */
bool conn_rig_turn(void);
/* Advances the clock, and services the connection. */
void conn_rig_wait(int64_t ns);

/* The client: sends; sends, and the connection survives a turn; reads all
 * available bytes; reads until the server owes nothing. */
void conn_rig_say(const char *data, size_t len);
void conn_rig_tell(const char *data, size_t len);
void conn_rig_read(void);
void conn_rig_read_all(void);
/* Decodes the bytes read, which must be complete answers, and returns their
 * number. IDS (may be NULL) gets their ids, and *LAST the last answer. */
size_t conn_rig_answers(uint32_t *ids, struct refd_answer *last);
void conn_rig_ping(uint32_t id);
/* Sends pings until the socket is full; continues where it stopped. */
void conn_rig_flood(void);

/* The host answers a ping. */
void conn_rig_pong(uint32_t id);

#endif
