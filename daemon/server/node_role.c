#include "daemon/server/node_role.h"

#include <string.h>

#include "daemon/server/server_internal.h"

struct node_role node_role(const struct server *server,
    const struct store_stats *store)
{
	struct node_role role = { .name = "waits" };

	if (server_public_state(server) != REFD_SERVING)
		return role;
	role.name = store->replica.role;
	role.takes_writes = strcmp(role.name, "single") == 0 ||
	    strcmp(role.name, "leader") == 0;
	role.serves_reads = role.takes_writes ||
	    (strcmp(role.name, "follower") == 0 &&
		store->replica.lag_ns <= server->cfg.settings.max_lag_ns);
	return role;
}
