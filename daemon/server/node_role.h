/*
 * What this node may do for clients: for `refd role`, and for load balancers.
 * Loop thread; nothing blocks.
 */
#ifndef SERVER_NODE_ROLE_H
#define SERVER_NODE_ROLE_H

#include <stdbool.h>

#include "daemon/store/store.h"

struct server;

struct node_role {
	/* "single": it is alone. "leader", "follower". "waits": none of
	 * them, as the daemon does not serve or the group is out of reach.
	 * Static. */
	const char *name;
	bool takes_writes; /* single and leader */
	/* The same, and a follower whose lag is at most group.max-lag. */
	bool serves_reads;
};

/* By STORE, the present values of the store of SERVER. A paused daemon keeps
 * its role. */
struct node_role node_role(const struct server *server,
    const struct store_stats *store);

#endif
