/* What the files of net/ share of the loop. Loop thread. */
#ifndef NET_NET_INTERNAL_H
#define NET_NET_INTERNAL_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/base/log.h"
#include "daemon/net/conn.h"
#include "daemon/net/net.h"
#include "daemon/net/recovery_thread.h"
#include "daemon/net/service.h"
#include "daemon/net/sockets.h"

enum net_state {
	NET_STATE_RECOVERING,
	NET_STATE_SERVING,
	NET_STATE_DRAINING,
	NET_STATE_HURRYING,
	NET_STATE_OVER,
	NET_STATE_FAILED
};

/* What the loop has counted. */
struct net_counts {
	uint64_t accepted, turned_away, bytes_in, bytes_out;
	struct histogram turn; /* how long a turn takes */
};

/* Those of one user. */
struct net_user {
	uint32_t uid;
	size_t nr_conns;
	struct conn_user of_conns;
	UT_hash_handle hh;
};

struct net {
	struct net_config cfg;
	enum net_state state;
	struct store *store;         /* borrowed while serving */
	struct scheduler *scheduler; /* NULL while recovering */
	struct recovery_thread *recovery;
	struct reload_thread reload;
	struct service_link service;
	struct marker marker;
	struct sockets sockets;

	struct event_base *base;
	bool is_turning;     /* in net_turned() */
	bool wants_turn;     /* another one after it */
	int wake_fd;         /* eventfd: the store has something */
	struct event *woken; /* by it */
	struct event *turn;  /* made active where there is work to do */
	struct event *due;   /* when the scheduler wants to be run */
	struct event *sweep; /* for those that stalled */
	struct event *sigterm, *sigint, *sighup;

	struct conn_host host;
	struct conn_list conns;
	struct net_user *users; /* who have any */
	size_t nr_conns;        /* admins too */
	size_t nr_admins;       /* connections of administrators */
	struct log_limit full_limit, denied_limit, slow_limit;
	struct net_counts counts;
	uint64_t slow_logged; /* of the slow log */

	int64_t started_ns;
	int64_t idle_ns; /* draining: since when only output is left */
};

/* Runs the scheduler and serves the connections that were touched, soon. */
void net_want_turn(struct net *net);

enum refd_server_state net_server_state(const struct net *net);
/* Wall clock, for ids. */
int64_t net_wall_ms(const struct net *net);

#endif
