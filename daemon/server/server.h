/*
 * The server: one thread that accepts connections, reads requests, gives them
 * to the scheduler and sends answers. The thread serves everybody, so it does
 * no file I/O, and sleeps only in the kernel's poll.
 *
 *	RECOVERING -> SERVING -> DRAINING -> HURRYING -> OVER
 *
 * RECOVERING: ping, status and stats are answered. Other requests are refused
 * with REFD_BUSY.
 * DRAINING, after SIGTERM or SIGINT: new transactions are refused. Accepted
 * transactions are finished and answered.
 * HURRYING, after a second signal: waiting transactions are given up. The
 * server waits only for transactions that the store has.
 * FAILED, from any state: the store cannot go on.
 *
 * Main thread, except server_wake() and server_awaiting().
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "daemon/base/confine.h"
#include "daemon/scheduler/scheduler.h"
#include "daemon/server/reload_thread.h"
#include "daemon/store/repos/rights.h"

struct server;

/* Settings that a reload changes. */
struct server_settings {
	/* For the status: the daemon's mode, and the weakest of all roots. */
	enum refd_durability durability, weakest;
	size_t connections_max;
	struct rights_peers peers; /* may connect; borrowed until the next
				      server_set() */
	struct scheduler_limits scheduler;
	int64_t max_lag_ns; /* group.max-lag */
};

struct server_config {
	const struct sys *sys;
	/* Borrowed until server_free(). */
	const char *socket_path, *state_dir;
	const char *const *roots;
	size_t nr_roots;
	const char *metrics_path; /* NULL: none */
	bool shares_rows;         /* <state>/group.sock is opened */
	/* Listening sockets of the service manager; -1: none, so the server
	 * makes a socket. */
	int metrics_fd, admin_fd, listen_fd;
	const struct confined *confined;
	int ready_fd; /* gets a line when the daemon serves; -1: none */
	struct server_settings settings;
	struct scheduler_config scheduler; /* without its settings */
	struct reload_calls reload;
};

/* NULL when out of memory or descriptors. */
struct server *server_new(const struct server_config *cfg);
/* After server_serve(). NULL is fine. */
void server_free(struct server *server);

/* For struct store_config. Async-signal-safe; never blocks. */
void server_wake(void *server);

/* For struct store_config: writes LIST, the repositories that await recovery,
 * to the marker, which clients read. Any thread; blocks. */
void server_awaiting(void *server, const char *list);

/* Opens the sockets. Negative errno and *WHY as listener_open(). */
int server_listen(struct server *server, char **why);
/* A descriptor that listens for refd-group, owned by the caller. Negative
 * errno. After server_listen(), with SHARES_ROWS. */
int server_replica_socket(const struct server *server);

/* Applies SETTINGS. Loop thread, for reload_calls.apply. */
void server_set(struct server *server, const struct server_settings *settings);

enum server_end {
	/* Drained: the store has no transactions. */
	SERVER_STOPPED,
	/* Told to stop while the recovery thread, which goes on, uses the
	 * store: STORE cannot be freed. */
	SERVER_INTERRUPTED,
	/* After a line in the log. STORE cannot be used any more. */
	SERVER_FAILED
};

/* Recovers and serves until a signal or a failure. */
enum server_end server_serve(struct server *server, struct store *store);

#endif
