/*
 * One turn of the loop: readable connections have decoded and submitted;
 * then, once for all of them, the scheduler is run, and every connection that
 * was touched is served. So what arrives together is answered together, and
 * the scheduler sees it as one.
 */
#include "daemon/net/net.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/net/admin.h"
#include "daemon/net/clients.h"
#include "daemon/net/handover.h"
#include "daemon/net/net_internal.h"
#include "daemon/net/requests.h"

#define NS_PER_US 1000
#define SWEEP_S   5
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
		event_base_loopbreak(net->base);
}

enum refd_server_state net_server_state(const struct net *net)
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

void net_want_turn(struct net *net)
{
	if (net->is_turning)
		net->wants_turn = true;
	else
		event_active(net->turn, EV_TIMEOUT, 1);
}

/* Who is touched by serving him has the next turn, not this one. */
static void net_touched(void *arg)
{
	struct net *net = arg;

	if (!net->is_turning)
		net_want_turn(net);
}

/* ---- turns ---- */

static void net_swept(evutil_socket_t fd, short what, void *arg)
{
	struct net *net = arg;

	(void)fd;
	(void)what;
	clients_check(net);
	service_look(&net->service);
}

static void arm(struct net *net, int64_t next_ns, int64_t now_ns)
{
	int64_t us;
	struct timeval delay;

	event_del(net->due);
	if (next_ns == INT64_MAX)
		return;
	us = next_ns > now_ns ? (next_ns - now_ns) / NS_PER_US : 0;
	delay.tv_sec = us / 1000000;
	delay.tv_usec = us % 1000000;
	event_add(net->due, &delay);
}

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

	histogram_add_ns(&net->counts.turn, now_ns - began_ns);
	if (net->scheduler == NULL)
		return;
	scheduler_sent(net->scheduler, now_ns);
	admin_log_slow(net);
}

static void net_turned(evutil_socket_t fd, short what, void *arg)
{
	struct net *net = arg;
	int64_t now_ns = SYS(net->cfg.sys, now_mono);
	int64_t next_ns = INT64_MAX, end_ns;
	const char *fatal = NULL;

	(void)fd;
	(void)what;
	net->is_turning = true;
	net->wants_turn = false;
	if (net->scheduler != NULL) {
		next_ns =
		    scheduler_run(net->scheduler, now_ns, net_wall_ms(net));
		fatal = store_fatal(net->store);
	}
	/* By the timer, so that the others' input is looked at before. */
	if (clients_serve(net) || net->wants_turn)
		next_ns = now_ns;
	net->is_turning = false;
	if (fatal != NULL) {
		log_event(LOG_LEVEL_ERROR, "journal-failed",
		    LOG_STR("error", fatal),
		    LOG_TEXT("it can't be brought back: see to the disk, then "
			     "start again; recovery finishes what was "
			     "acknowledged"));
		move(net, NET_STATE_FAILED);
		return;
	}
	count_turn(net, now_ns);
	if (net->state == NET_STATE_DRAINING ||
	    net->state == NET_STATE_HURRYING) {
		end_ns = look_for_end(net, now_ns);
		if (end_ns < next_ns)
			next_ns = end_ns;
	}
	arm(net, next_ns, now_ns);
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
	uint64_t one = 1;
	ssize_t n = write(net->wake_fd, &one, sizeof(one));

	/* A full counter wakes as well as one more. */
	(void)n;
}

static void net_woken(evutil_socket_t fd, short what, void *arg)
{
	struct net *net = arg;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	if (net->recovery != NULL)
		look_at_recovery(net);
	reload_thread_look(&net->reload);
	net_want_turn(net);
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

static void net_signalled(evutil_socket_t number, short what, void *arg)
{
	const char *name = number == SIGTERM ? "SIGTERM" : "SIGINT";
	struct net *net = arg;

	(void)what;
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
	net_want_turn(net);
}

static void net_hung_up(evutil_socket_t number, short what, void *arg)
{
	struct net *net = arg;

	(void)number;
	(void)what;
	if (net->state == NET_STATE_RECOVERING ||
	    net->state == NET_STATE_SERVING)
		reload_thread_ask(&net->reload);
	else
		log_event(LOG_LEVEL_INFO, "reload-refused",
		    LOG_TEXT("the daemon is stopping"));
}

/* ---- other settings ---- */

void net_set(struct net *net, const struct net_settings *settings)
{
	net->cfg.settings = *settings;
	net->host.connections_max = settings->connections_max;
	sockets_set_peers(&net->sockets, &settings->peers);
	if (net->scheduler != NULL)
		scheduler_set_limits(net->scheduler, &settings->scheduler);
}

/* ---- life ---- */

static void net_facts(void *arg, struct service_facts *facts)
{
	struct scheduler_stats stats;
	struct net *net = arg;

	facts->connections = net->nr_conns;
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

static bool make_events(struct net *net)
{
	static const struct timeval sweep_every = { SWEEP_S, 0 };
	struct event_base *base = net->base;

	net->woken =
	    event_new(base, net->wake_fd, EV_READ | EV_PERSIST, net_woken, net);
	net->turn = event_new(base, -1, 0, net_turned, net);
	net->due = evtimer_new(base, net_turned, net);
	net->sweep = event_new(base, -1, EV_PERSIST, net_swept, net);
	net->sigterm = evsignal_new(base, SIGTERM, net_signalled, net);
	net->sigint = evsignal_new(base, SIGINT, net_signalled, net);
	net->sighup = evsignal_new(base, SIGHUP, net_hung_up, net);
	return net->woken != NULL && net->turn != NULL && net->due != NULL &&
	    net->sweep != NULL && net->sigterm != NULL && net->sigint != NULL &&
	    net->sighup != NULL && event_add(net->sighup, NULL) == 0 &&
	    event_add(net->woken, NULL) == 0 &&
	    event_add(net->sweep, &sweep_every) == 0 &&
	    event_add(net->sigterm, NULL) == 0 &&
	    event_add(net->sigint, NULL) == 0;
}

struct net *net_new(const struct net_config *cfg)
{
	struct net *net = calloc(1, sizeof(*net));
	struct service_config service = { .sys = cfg->sys,
		.state_dir = cfg->state_dir,
		.ready_fd = cfg->ready_fd,
		.facts = net_facts };

	if (net == NULL)
		return NULL;
	net->cfg = *cfg;
	net->full_limit = net->denied_limit =
	    (struct log_limit){ .burst = 1, .seconds = 60 };
	net->slow_limit = (struct log_limit){ .burst = 10, .seconds = 10 };
	net->started_ns = SYS(cfg->sys, now_mono);
	TAILQ_INIT(&net->conns);
	net->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	net->base = event_base_new();
	service.base = net->base;
	service.arg = net;
	service_init(&net->service, &service);
	reload_thread_init(&net->reload, &cfg->reload, &net->service, net_wake,
	    net);
	net->host = (struct conn_host){ .base = net->base,
		.sys = cfg->sys,
		.request = requests_take,
		.said_all = clients_said_all,
		.arg = net,
		.connections_max = cfg->settings.connections_max,
		.touched = net_touched };
	if (marker_init(&net->marker, cfg->sys, cfg->socket_path) < 0 ||
	    net->wake_fd < 0 || net->base == NULL ||
	    conn_host_init(&net->host) < 0 || !make_events(net)) {
		net_free(net);
		return NULL;
	}
	return net;
}

static void free_event(struct event *event)
{
	if (event != NULL)
		event_free(event);
}

void net_free(struct net *net)
{
	if (net == NULL)
		return;
	sockets_close(&net->sockets);
	service_done(&net->service);
	free_event(net->woken);
	free_event(net->turn);
	free_event(net->due);
	free_event(net->sweep);
	free_event(net->sigterm);
	free_event(net->sigint);
	free_event(net->sighup);
	if (net->base != NULL)
		event_base_free(net->base);
	conn_host_done(&net->host);
	marker_done(&net->marker);
	if (net->wake_fd >= 0)
		close(net->wake_fd);
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
	event_base_dispatch(net->base);
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
