/*
 * The listening sockets of the daemon: for clients, for administrators, for
 * refd-group, and for the metrics. Loop thread; sockets_open() runs before the
 * loop and may block.
 */
#ifndef SERVER_SOCKETS_H
#define SERVER_SOCKETS_H

#include "daemon/metrics/metrics_http.h"
#include "daemon/server/listener.h"
#include "daemon/store/repos/rights.h"

struct server;

struct sockets {
	struct listener *clients;
	struct listener *admin;            /* NULL: could not be opened */
	struct listener *metrics;          /* NULL: not configured */
	struct listener *replica;          /* refd-group; NULL: none */
	struct metrics_http *metrics_http; /* the same */
};

/* Opens all sockets of SERVER's configuration and listens. Negative errno and
 * *WHY as listener_open(). A failure of the administrators' socket is only
 * logged, because clients write refs without it. */
int sockets_open(struct server *server, char **why);
/* Changes the mode of the clients' socket, for other PEERS. */
void sockets_set_peers(struct sockets *sockets,
    const struct rights_peers *peers);
void sockets_close(struct sockets *sockets);

#endif
