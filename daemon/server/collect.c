#include "daemon/server/collect.h"

#include <stdlib.h>

#include "daemon/server/server_internal.h"

#define NS_PER_S 1000000000LL

static void add_stages(struct metrics *m, struct net *net)
{
	struct store_progress progress[STORE_STAGES];
	int64_t now_ns;
	size_t i;

	store_progress(net->store, STALL_TOLD_NS, progress);
	now_ns = SYS(net->cfg.sys, now_mono);
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
	struct net *net = arg;

	if (m == NULL)
		return NULL;
	m->now_ns = SYS(net->cfg.sys, now_mono);
	/* During recovery the store belongs to the recovery thread. */
	if (net->scheduler != NULL) {
		scheduler_stats(net->scheduler, &m->scheduler);
		store_stats(net->store, &m->store);
		m->measure = *scheduler_measure(net->scheduler);
		add_stages(m, net);
	}
	m->serving = net_public_state(net) == REFD_SERVING;
	m->uptime_s = (uint64_t)((m->now_ns - net->started_ns) / NS_PER_S);
	m->flush_hangs_s = stall_seconds(&net->service.stall);
	m->connections = net->clients.nr_conns;
	m->accepted = net->clients.accepted;
	m->turned_away = net->clients.turned_away;
	m->bytes_in = net->clients.host.bytes_in;
	m->bytes_out = net->clients.host.bytes_out;
	m->turn = net->turns;
	metrics_complete(m);
	return m;
}
