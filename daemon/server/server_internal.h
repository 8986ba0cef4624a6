/*
 * The state that files of this folder share. Loop thread.
 */
#ifndef SERVER_SERVER_INTERNAL_H
#define SERVER_SERVER_INTERNAL_H

#include "daemon/server/admin.h"
#include "daemon/server/clients.h"
#include "daemon/server/loop.h"
#include "daemon/server/server.h"
#include "daemon/server/sockets.h"
#include "daemon/service/recovery_thread.h"
#include "daemon/service/service.h"

enum server_state {
	SERVER_STATE_RECOVERING,
	SERVER_STATE_SERVING,
	SERVER_STATE_DRAINING,
	SERVER_STATE_HURRYING,
	SERVER_STATE_OVER,
	SERVER_STATE_FAILED
};

struct server {
	struct server_config cfg;
	enum server_state state;
	struct store *store;              /* borrowed by server_serve() */
	struct scheduler *scheduler;      /* NULL while recovering */
	struct recovery_thread *recovery; /* NULL: recovery is over */

	struct loop loop;
	struct sockets sockets;
	struct clients clients;
	struct admin_slow slow;
	struct log_limit io_limit;
	struct reload_thread reload;
	struct service_link service;
	struct marker marker;

	struct histogram turns; /* durations of the loop's turns */
	int64_t started_ns;
	int64_t paused_ns; /* since when, while the scheduler is paused */
	/* While draining: since when only output is left; 0: not yet. */
	int64_t idle_ns;
};

/* The state that clients are told. */
enum refd_server_state server_public_state(const struct server *server);
/* Wall clock, for ids. */
int64_t server_wall_ms(const struct server *server);

#endif
