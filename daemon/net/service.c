#include "daemon/net/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/quote.h"
#include "daemon/net/notify.h"
#include "daemon/net/stall.h"

#define STATE_BYTES 256
#define NS_PER_US   1000
/* The manager is told this often within the time it waits; and what takes
 * longer than one such share is stuck. */
#define SHARES 4
/* Without a watchdog a flush hangs, or a thread is stuck, after so long. */
#define STALL_NS (15 * 1000000000LL)
#define QUOTED   256
/* How often the status is told anew, where it has changed. */
#define STATUS_US 5000000ULL

struct service {
	struct event *tick;
	int64_t share_ns; /* of the watchdog's time; 0: there is none */
	uint64_t told;    /* transactions, at the last status */
};

/* ---- what is told ---- */

static void tell_status(struct net *net, const char *head)
{
	struct scheduler_stats stats;
	char state[STATE_BYTES + STALL_TEXT], stalled[STALL_TEXT + 16] = "";
	char path[QUOTED];

	scheduler_stats(net->scheduler, &stats);
	if (net->stall.since_ns != 0)
		snprintf(stalled, sizeof(stalled), "A FLUSH HANGS on %s; ",
		    quote(path, sizeof(path), stall_path(net)));
	else if (net->stall.text[0] != '\0')
		snprintf(stalled, sizeof(stalled), "STALLED: %s; ",
		    net->stall.text);
	snprintf(state, sizeof(state),
	    "%sSTATUS=%sserving: %" PRIu64 " transactions, %" PRIu64
	    " in work, %zu connections",
	    head, stalled, stats.transactions,
	    stats.waiting + stats.prepared + stats.in_store, net->nr_conns);
	notify_manager(state);
	if (net->service != NULL)
		net->service->told = stats.transactions;
}

static bool is_stalled(const struct net *net)
{
	return net->stall.since_ns != 0 || net->stall.text[0] != '\0';
}

/* True: nobody is served. */
static bool look(struct net *net)
{
	const struct service *service = net->service;
	bool was_stalled = is_stalled(net), stops_all;
	int64_t limit_ns = STALL_NS;

	if (service != NULL && service->share_ns > 0)
		limit_ns = service->share_ns;
	stops_all = stall_look(net, limit_ns);
	/* So that systemctl status shows it at once. */
	if (is_stalled(net) != was_stalled && net->state == NET_STATE_SERVING)
		tell_status(net, "");
	return stops_all;
}

void service_look(struct net *net)
{
	if (net->scheduler != NULL)
		look(net);
}

static void service_ticked(evutil_socket_t fd, short what, void *arg)
{
	struct scheduler_stats stats;
	struct net *net = arg;

	(void)fd;
	(void)what;
	/* Not fed while it does: the manager then ends the daemon. */
	if (!look(net) && net->service->share_ns > 0)
		notify_manager("WATCHDOG=1");
	if (net->state != NET_STATE_SERVING)
		return;
	scheduler_stats(net->scheduler, &stats);
	if (stats.transactions != net->service->told)
		tell_status(net, "");
}

/* ---- the watchdog ---- */

/* WATCHDOG_USEC, unless it is meant for another process. */
static uint64_t watchdog_us(void)
{
	const char *pid = getenv("WATCHDOG_PID");
	const char *us = getenv("WATCHDOG_USEC");

	if (us == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(us, NULL, 10);
}

static void start_ticking(struct net *net)
{
	uint64_t us = watchdog_us(), every_us = STATUS_US;
	struct service *service;
	struct timeval every;

	if (us == 0 && getenv("NOTIFY_SOCKET") == NULL)
		return;
	service = calloc(1, sizeof(*service));
	if (service == NULL)
		return;
	service->share_ns = (int64_t)(us / SHARES) * NS_PER_US;
	if (us > 0 && us / SHARES < every_us)
		every_us = us / SHARES;
	every.tv_sec = (time_t)(every_us / 1000000);
	every.tv_usec = (suseconds_t)(every_us % 1000000);
	service->tick =
	    event_new(net->base, -1, EV_PERSIST, service_ticked, net);
	net->service = service;
	if (service->tick == NULL || event_add(service->tick, &every) < 0)
		log_event(LOG_LEVEL_WARNING, "watchdog-failed",
		    LOG_TEXT("there is no timer for the service manager's "
			     "watchdog, which will end the daemon"));
}

void service_free(struct service *service)
{
	if (service == NULL)
		return;
	if (service->tick != NULL)
		event_free(service->tick);
	free(service);
}

/* ---- states ---- */

/* A line, and the end of it: so that a script may read it, as s6 does. */
static void tell_ready_fd(struct net *net)
{
	if (net->cfg.ready_fd < 0)
		return;
	if (write(net->cfg.ready_fd, "ready\n", 6) < 0)
		log_event(LOG_LEVEL_WARNING, "ready-fd-failed",
		    LOG_NUM("fd", net->cfg.ready_fd),
		    LOG_STR("error", strerror(errno)),
		    LOG_TEXT("who waits there is not told that it serves"));
	close(net->cfg.ready_fd);
	net->cfg.ready_fd = -1;
}

void service_ready(struct net *net)
{
	tell_ready_fd(net);
	start_ticking(net);
	tell_status(net, "READY=1\n");
}

void service_reloading(struct net *net)
{
	int64_t now_us = SYS(net->cfg.sys, now_mono) / NS_PER_US;
	char state[STATE_BYTES];

	snprintf(state, sizeof(state),
	    "RELOADING=1\nMONOTONIC_USEC=%" PRId64
	    "\nSTATUS=reading the configuration",
	    now_us);
	/* While it recovers it is not up yet, and this would say so. */
	if (net->state == NET_STATE_SERVING)
		notify_manager(state);
}

void service_reloaded(struct net *net)
{
	if (net->state == NET_STATE_SERVING)
		tell_status(net, "READY=1\n");
}

void service_stopping(struct net *net)
{
	struct scheduler_stats stats;
	char state[STATE_BYTES];

	scheduler_stats(net->scheduler, &stats);
	snprintf(state, sizeof(state),
	    "STOPPING=1\nSTATUS=finishing %" PRIu64 " transactions",
	    stats.waiting + stats.prepared + stats.in_store);
	notify_manager(state);
}
