/*
 * One connection of the daemon (daemon/server/conn) over a socketpair, with a host that
 * answers when told to and a clock that stands still: what the tests of conn
 * share. One at a time, in `conn_rig`.
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
	struct conn *conn; /* NULL: it is over */
	int client;        /* the other end */
	bool answers_at_once;
	bool has_said_all; /* the host was told so */

	/* What the host was asked and has not answered. */
	struct refd_request asked[CONN_RIG_ASKED_MAX];
	size_t nr_asked;

	/* What the client has read and not decoded. */
	char *got;
	size_t got_len;
	bool at_end;

	size_t flooded; /* bytes of pings sent */
};
extern struct conn_rig conn_rig;

/* A transaction of two updates, as it goes over the wire. */
extern const char conn_rig_transaction[];
extern const size_t conn_rig_transaction_len;

void conn_rig_setup(void);
void conn_rig_teardown(void);

/* The loop, until nothing more happens. False: the connection is over, and
 * has been freed. */
bool conn_rig_turn(void);
/* The clock goes on, and the connection is looked at. */
void conn_rig_wait(int64_t ns);

/* The client: says, reads all there is now, reads until nothing is owed. */
void conn_rig_say(const char *data, size_t len);
void conn_rig_read(void);
void conn_rig_read_all(void);
/* Takes hello out of what it has read. */
void conn_rig_greet(void);
/* Decodes what it has read, which must be whole answers, and returns how
 * many. IDS, if not NULL, gets their ids, and *LAST the last one. */
size_t conn_rig_answers(uint32_t *ids, struct refd_answer *last);
void conn_rig_ping(uint32_t id);
/* Pings until no more of them are taken; goes on where it stopped. */
void conn_rig_flood(void);

/* The host answers a ping. */
void conn_rig_pong(uint32_t id);

#endif
