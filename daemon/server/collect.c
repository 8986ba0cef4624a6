#include "daemon/server/collect.h"

#include <stdlib.h>

#include "daemon/base/time.h"
#include "daemon/server/node_role.h"
#include "daemon/server/server_internal.h"

static void add_stages(struct metrics *m, struct server *server)
{
	struct store_progress progress[STORE_STAGES];
	int64_t now_ns;
	size_t i;

	store_progress(server->store, STALL_TOLD_NS, progress);
	now_ns = SYS(server->cfg.sys, now_mono);
	for (i = 0; i < STORE_STAGES; i++) {
		if (progress[i].since_ns != 0)
			m->stage_s[i] =
			    (uint64_t)((now_ns - progress[i].since_ns) /
				NS_PER_S);
		m->stage_stuck[i] = progress[i].nr_stuck;
	}
}

struct metrics *collect_metrics(void *arg)
{
	struct metrics *m = calloc(1, sizeof(*m));
	struct server *server = arg;
	struct node_role role;

	if (m == NULL)
		return NULL;
	m->now_ns = SYS(server->cfg.sys, now_mono);
	/* During recovery the store belongs to the recovery thread. */
	if (server->scheduler != NULL) {
		scheduler_stats(server->scheduler, &m->scheduler);
		store_stats(server->store, &m->store);
		m->measure = *scheduler_measure(server->scheduler);
		m->paused = scheduler_is_paused(server->scheduler);
		add_stages(m, server);
	}
	role = node_role(server, &m->store);
	m->role = role.name;
	m->takes_writes = role.takes_writes;
	m->serves_reads = role.serves_reads;
	m->serving = server_public_state(server) == REFD_SERVING;
	m->uptime_s = (uint64_t)((m->now_ns - server->started_ns) / NS_PER_S);
	m->flush_hangs_s = stall_seconds(&server->service.stall);
	m->connections = server->clients.nr_conns;
	m->accepted = server->clients.accepted;
	m->turned_away = server->clients.turned_away;
	m->bytes_in = server->clients.host.bytes_in;
	m->bytes_out = server->clients.host.bytes_out;
	m->turn = server->turns;
	metrics_complete(m);
	return m;
}
