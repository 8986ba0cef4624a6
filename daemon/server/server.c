/*
 * One turn of the loop: readable connections have decoded and submitted;
 * then, once for all of them, the scheduler is run, and every connection that
 * was touched is served. So what arrives together is answered together, and
 * the scheduler sees it as one.
 */
#include "daemon/server/server.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/server/handover.h"
#include "daemon/server/server_internal.h"
#include "daemon/server/requests.h"

/* How long a stop waits for clients to take their answers. */
#define PARTING_NS (5 * 1000000000LL)

/* ---- states ---- */

static void move(struct net *net, enum net_state state)
{
	static const bool allowed[6][6] = {
		[NET_STATE_RECOVERING] = { [NET_STATE_SERVING] = true,
		    [NET_STATE_OVER] = true,
		    [NET_STATE_FAILED] = true },
		[NET_STATE_SERVING] = { [NET_STATE_DRAINING] = true,
		    [NET_STATE_FAILED] = true },
		[NET_STATE_DRAINING] = { [NET_STATE_HURRYING] = true,
		    [NET_STATE_OVER] = true,
		    [NET_STATE_FAILED] = true },
		[NET_STATE_HURRYING] = { [NET_STATE_OVER] = true,
		    [NET_STATE_FAILED] = true },
	};

	assert(allowed[net->state][state]);
	net->state = state;
	if (state == NET_STATE_OVER || state == NET_STATE_FAILED)
		loop_stop(&net->loop);
}

enum refd_server_state net_public_state(const struct net *net)
{
	switch (net->state) {
	case NET_STATE_RECOVERING:
		return REFD_RECOVERING;
	case NET_STATE_SERVING:
		return scheduler_is_closed(net->scheduler) ? REFD_DRAINING :
							     REFD_SERVING;
	case NET_STATE_DRAINING:
	case NET_STATE_HURRYING:
	case NET_STATE_OVER:
	case NET_STATE_FAILED:
		break;
	}
	return REFD_DRAINING;
}

int64_t net_wall_ms(const struct net *net)
{
	return SYS(net->cfg.sys, now_wall) / 1000000;
}

/* ---- turns ---- */

/* Everything is answered; those who do not take it are not waited for long,
 * nor at all in a hurry. Returns when to look again at the latest. */
static int64_t look_for_end(struct net *net, int64_t now_ns)
{
	if (!scheduler_is_idle(net->scheduler)) {
		net->idle_ns = 0;
		return INT64_MAX;
	}
	if (net->idle_ns == 0)
		net->idle_ns = now_ns;
	if (net->state == NET_STATE_HURRYING || !clients_owed(net) ||
	    now_ns - net->idle_ns >= PARTING_NS) {
		move(net, NET_STATE_OVER);
		return INT64_MAX;
	}
	return net->idle_ns + PARTING_NS;
}

static void count_turn(struct net *net, int64_t began_ns)
{
	int64_t now_ns = SYS(net->cfg.sys, now_mono);

	histogram_add_ns(&net->turns, now_ns - began_ns);
	if (net->scheduler == NULL)
		return;
	scheduler_sent(net->scheduler, now_ns);
	admin_slow_log(net);
}

static int64_t run_turn(void *arg, int64_t now_ns)
{
	struct net *net = arg;
	int64_t next_ns = INT64_MAX, end_ns;
	const char *fatal = NULL;

	if (net->scheduler != NULL) {
		next_ns =
		    scheduler_run(net->scheduler, now_ns, net_wall_ms(net));
		fatal = store_fatal(net->store);
	}
	if (clients_serve(net))
		next_ns = now_ns;
	if (fatal != NULL) {
		log_event(LOG_LEVEL_ERROR, "journal-failed",
		    LOG_STR("error", fatal),
		    LOG_TEXT("it can't be brought back: see to the disk, then "
			     "start again; recovery finishes what was "
			     "acknowledged"));
		move(net, NET_STATE_FAILED);
		return INT64_MAX;
	}
	count_turn(net, now_ns);
	if (net->state == NET_STATE_DRAINING ||
	    net->state == NET_STATE_HURRYING) {
		end_ns = look_for_end(net, now_ns);
		if (end_ns < next_ns)
			next_ns = end_ns;
	}
	return next_ns;
}

static void run_sweep(void *arg)
{
	struct net *net = arg;

	clients_check(net);
	service_look(&net->service);
}

/* ---- recovery's end, and the daemon's ---- */

static void begin_serving(struct net *net)
{
	const struct scheduler_store store = handover(net->store);

	net->cfg.scheduler.window_refs =
	    net->cfg.settings.scheduler.window_refs;
	net->scheduler = scheduler_new(&net->cfg.scheduler, &store);
	if (net->scheduler == NULL) {
		log_event(LOG_LEVEL_ERROR, "start-failed",
		    LOG_TEXT("out of memory"));
		move(net, NET_STATE_FAILED);
		return;
	}
	scheduler_set_limits(net->scheduler, &net->cfg.settings.scheduler);
	move(net, NET_STATE_SERVING);
	log_event(LOG_LEVEL_INFO, "serving",
	    LOG_STR("socket", net->cfg.socket_path));
	service_ready(&net->service);
}

static void look_at_recovery(struct net *net)
{
	int result;

	if (!recovery_thread_is_over(net->recovery, &result))
		return;
	recovery_thread_free(net->recovery);
	net->recovery = NULL;
	if (result < 0)
		move(net, NET_STATE_FAILED);
	else
		begin_serving(net);
}

void net_wake(void *arg)
{
	struct net *net = arg;

	loop_wake(&net->loop);
}

static void look_at_threads(void *arg)
{
	struct net *net = arg;

	if (net->recovery != NULL)
		look_at_recovery(net);
	reload_thread_look(&net->reload);
}

static void begin_draining(struct net *net, const char *signal_name)
{
	struct scheduler_stats stats;

	scheduler_stats(net->scheduler, &stats);
	log_event(LOG_LEVEL_INFO, "stopping", LOG_WORD("signal", signal_name),
	    LOG_NUM("transactions",
		stats.waiting + stats.prepared + stats.in_store),
	    LOG_TEXT("they are finished first"));
	service_stopping(&net->service);
	/* New clients of an inherited socket wait for the next daemon. */
	listener_leave(net->sockets.clients);
	move(net, NET_STATE_DRAINING);
	scheduler_drain(net->scheduler);
}

static void stop_for_signal(struct net *net, const char *name)
{
	switch (net->state) {
	case NET_STATE_RECOVERING:
		log_event(LOG_LEVEL_INFO, "stopping", LOG_WORD("signal", name),
		    LOG_TEXT("while recovering: the next start takes it up "
			     "again"));
		move(net, NET_STATE_OVER);
		break;
	case NET_STATE_SERVING:
		begin_draining(net, name);
		break;
	case NET_STATE_DRAINING:
		log_event(LOG_LEVEL_INFO, "hurrying", LOG_WORD("signal", name),
		    LOG_TEXT("once more: what waits is given up"));
		move(net, NET_STATE_HURRYING);
		scheduler_hurry(net->scheduler);
		break;
	case NET_STATE_HURRYING:
	case NET_STATE_OVER:
	case NET_STATE_FAILED:
		break;
	}
	loop_want_turn(&net->loop);
}

static void reload_for_signal(struct net *net)
{
	if (net->state == NET_STATE_RECOVERING ||
	    net->state == NET_STATE_SERVING)
		reload_thread_ask(&net->reload);
	else
		log_event(LOG_LEVEL_INFO, "reload-refused",
		    LOG_TEXT("the daemon is stopping"));
}

static void take_signal(void *arg, int number)
{
	if (number == SIGHUP)
		reload_for_signal(arg);
	else
		stop_for_signal(arg, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

/* ---- other settings ---- */

void net_set(struct net *net, const struct net_settings *settings)
{
	net->cfg.settings = *settings;
	net->clients.host.connections_max = settings->connections_max;
	sockets_set_peers(&net->sockets, &settings->peers);
	if (net->scheduler != NULL)
		scheduler_set_limits(net->scheduler, &settings->scheduler);
}

/* ---- life ---- */

static void tell_facts(void *arg, struct service_facts *facts)
{
	struct scheduler_stats stats;
	struct net *net = arg;

	facts->connections = net->clients.nr_conns;
	facts->is_serving = net->state == NET_STATE_SERVING;
	if (net->scheduler == NULL)
		return;
	scheduler_stats(net->scheduler, &stats);
	facts->transactions = stats.transactions;
	facts->in_work = stats.waiting + stats.prepared + stats.in_store;
	facts->store = net->store;
}

void net_awaiting(void *arg, const char *list)
{
	struct net *net = arg;

	marker_write(&net->marker, list);
}

struct net *net_new(const struct net_config *cfg)
{
	struct net *net = calloc(1, sizeof(*net));
	const struct loop_calls loop = { .turn = run_turn,
		.woken = look_at_threads,
		.sweep = run_sweep,
		.signalled = take_signal,
		.arg = net };
	const struct service_config service = { .sys = cfg->sys,
		.state_dir = cfg->state_dir,
		.ready_fd = cfg->ready_fd,
		.facts = tell_facts,
		.arg = net };
	bool ok;

	if (net == NULL)
		return NULL;
	net->cfg = *cfg;
	net->started_ns = SYS(cfg->sys, now_mono);
	admin_slow_init(&net->slow);
	ok = loop_init(&net->loop, cfg->sys, &loop);
	service_init(&net->service, &service, net->loop.base);
	reload_thread_init(&net->reload, &cfg->reload, &net->service, net_wake,
	    net);
	if (clients_init(net) < 0 ||
	    marker_init(&net->marker, cfg->sys, cfg->socket_path) < 0 || !ok) {
		net_free(net);
		return NULL;
	}
	return net;
}

void net_free(struct net *net)
{
	if (net == NULL)
		return;
	sockets_close(&net->sockets);
	service_done(&net->service);
	loop_done(&net->loop);
	clients_done(net);
	marker_done(&net->marker);
	free(net);
}

int net_listen(struct net *net, char **why)
{
	return sockets_open(net, why);
}

enum net_end net_serve(struct net *net, struct store *store)
{
	struct recovery_thread_config recovery = { .sys = net->cfg.sys,
		.store = store,
		.marker = &net->marker,
		.wake = net_wake,
		.wake_arg = net };

	net->store = store;
	if (recovery_thread_start(&recovery, &net->recovery) < 0)
		return NET_FAILED;
	loop_run(&net->loop);
	reload_thread_give_up(&net->reload);
	/* A client must not connect to a daemon that no longer answers. */
	sockets_close(&net->sockets);
	clients_hang_up(net);
	if (net->state != NET_STATE_OVER)
		return NET_FAILED;
	if (net->recovery != NULL)
		return NET_INTERRUPTED;
	scheduler_free(net->scheduler);
	net->scheduler = NULL;
	return NET_STOPPED;
}
