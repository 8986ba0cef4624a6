/*
 * The loop: one thread that listens, reads requests, hands them to the
 * scheduler, and writes answers. It does no file I/O and never sleeps but in
 * the kernel's poll.
 *
 *	RECOVERING -> SERVING -> DRAINING -> HURRYING -> OVER
 *
 * RECOVERING: connections are taken and told so; ping, status and stats are
 * answered, everything else is refused with REFD_BUSY. DRAINING, from
 * SIGTERM or SIGINT: no new transactions, what is there is finished and
 * answered. HURRYING, from a second one: what waits is given up, what the
 * store has is awaited. (FAILED from anywhere: the store can't go on.)
 *
 * All calls from the main thread but net_wake(), which any may call.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "daemon/base/confine.h"
#include "daemon/server/reload_thread.h"
#include "daemon/scheduler/scheduler.h"
#include "daemon/store/repos/rights.h"

struct net;

/* What may change while it runs. */
struct net_settings {
	enum refd_durability durability; /* to be told */
	size_t connections_max;
	struct rights_peers peers; /* who may connect; borrowed until others
				     are set */
	struct scheduler_limits scheduler;
};

struct net_config {
	const struct sys *sys;
	/* Borrowed until net_free(). */
	const char *socket_path, *state_dir;
	const char *metrics_path; /* NULL: none */
	int metrics_fd;           /* listens; -1: to be made */
	int admin_fd;             /* the same */
	int listen_fd;            /* listens on it already; -1: to be made */
	const struct confined *confined;
	int ready_fd; /* gets a line when the daemon serves; -1: none */
	struct net_settings settings;
	struct scheduler_config
	    scheduler; /* SETTINGS' fields need not be filled */

	struct reload_calls reload;
};

/* NULL when out of memory or descriptors. */
struct net *net_new(const struct net_config *cfg);
/* The loop must be over. NULL is fine. */
void net_free(struct net *net);

/* For struct store_config: async-signal-safe, never blocks. */
void net_wake(void *net);

/* The same: what awaits recovery is told to clients. Any thread; blocks. */
void net_awaiting(void *net, const char *list);

/* Takes the socket. Negative errno and *WHY as listener_open(). */
int net_listen(struct net *net, char **why);

/* From now on. Loop thread: for APPLY. */
void net_set(struct net *net, const struct net_settings *settings);

enum net_end {
	NET_STOPPED,     /* drained: the store has nothing in hand */
	NET_INTERRUPTED, /* asked to stop while recovering, which goes on in
			    its thread: STORE can't be freed */
	NET_FAILED       /* the log has it; STORE can't be used any more */
};

/* Recovers and serves, until it is told to stop. */
enum net_end net_serve(struct net *net, struct store *store);

#endif
