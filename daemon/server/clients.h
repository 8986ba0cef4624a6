/*
 * All connections: admits or refuses new connections, serves the connections
 * that have work, and hangs up.
 *
 * Loop thread; nothing blocks.
 */
#ifndef SERVER_CLIENTS_H
#define SERVER_CLIENTS_H

#include "daemon/base/hash.h"
#include "daemon/base/log.h"
#include "daemon/server/conn.h"

struct server;

/* An account with connections. */
struct client_user {
	uint32_t uid;
	size_t nr_conns;
	struct conn_user of_conns;
	UT_hash_handle hh;
};

/* The fields belong to clients.c; other files only read the counts. */
struct clients {
	struct conn_host host;
	struct conn_list conns;
	struct client_user *users;
	size_t nr_conns;  /* with those of administrators */
	size_t nr_admins; /* connections of administrators */
	struct log_limit full_limit, denied_limit;
	uint64_t turned_away;
};

/* After loop_init(). 0 or -ENOMEM; clients_done() is needed even so. */
int clients_init(struct server *server);
/* After clients_hang_up(). */
void clients_done(struct server *server);

/* Takes ownership of FD, a new connection: serves it, or answers with a refusal
 * and hangs up. */
void clients_add(struct server *server, int fd, bool is_admin);
/* Refuses or drops connections whose client has stalled. */
void clients_check(struct server *server);
/* Does any connection have output that its client has not taken? */
bool clients_owed(const struct server *server);
/* Hangs up on all. */
void clients_hang_up(struct server *server);

#endif
