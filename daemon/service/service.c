#include "daemon/service/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/time.h"
#include "daemon/service/notify.h"
#include "proto/lib/print.h"

#define STATE_BYTES 256
/* The manager gets so many messages within the watchdog's time. Work is a stall
 * if it takes longer than the time between two messages. */
#define SHARES 4
/* The limit of a stall without a watchdog. */
#define STALL_NS (15 * 1000000000LL)
#define QUOTED   256
/* Time between two messages of the status, if the status has changed. */
#define STATUS_US 5000000ULL

void service_init(struct service_link *link, const struct service_config *cfg,
    struct event_base *base)
{
	*link = (struct service_link){ .cfg = *cfg, .base = base };
	stall_init(&link->stall, cfg->sys, cfg->state_dir);
}

void service_done(struct service_link *link)
{
	if (link->tick != NULL)
		event_free(link->tick);
	link->tick = NULL;
}

static struct service_facts ask_facts(const struct service_link *link)
{
	struct service_facts facts = { 0 };

	link->cfg.facts(link->cfg.arg, &facts);
	return facts;
}

/* ---- the status ---- */

/* HEAD: lines before the status, or "". */
static void send_status(struct service_link *link, const char *head)
{
	const struct service_facts facts = ask_facts(link);
	char state[STATE_BYTES + STALL_TEXT], stalled[STALL_TEXT + 16] = "";
	const struct stall *stall = &link->stall;
	char path[QUOTED];

	if (stall->since_ns != 0)
		snprintf(stalled, sizeof(stalled), "A FLUSH HANGS on %s; ",
		    print_quoted(path, sizeof(path), stall_path(stall)));
	else if (stall->text[0] != '\0')
		snprintf(stalled, sizeof(stalled), "STALLED: %s; ",
		    stall->text);
	snprintf(state, sizeof(state),
	    "%sSTATUS=%sserving: %" PRIu64 " transactions, %" PRIu64
	    " in work, %zu connections",
	    head, stalled, facts.transactions, facts.in_work,
	    facts.connections);
	notify_manager(state);
	link->transactions = facts.transactions;
}

/* True: the daemon serves nobody. */
static bool look_for_stalls(struct service_link *link,
    const struct service_facts *facts)
{
	bool was_on = stall_is_on(&link->stall), stops_all;

	stops_all = stall_look(&link->stall, facts->store,
	    link->share_ns > 0 ? link->share_ns : STALL_NS);
	/* The status follows at once, so that systemctl status shows the
	 * stall. */
	if (stall_is_on(&link->stall) != was_on && facts->is_serving)
		send_status(link, "");
	return stops_all;
}

void service_look(struct service_link *link)
{
	const struct service_facts facts = ask_facts(link);

	if (facts.store != NULL)
		look_for_stalls(link, &facts);
}

static void service_ticked(evutil_socket_t fd, short what, void *arg)
{
	struct service_link *link = arg;
	const struct service_facts facts = ask_facts(link);

	(void)fd;
	(void)what;
	/* Without this message the manager ends the daemon. */
	if (!look_for_stalls(link, &facts) && link->share_ns > 0)
		notify_manager("WATCHDOG=1");
	if (facts.is_serving && facts.transactions != link->transactions)
		send_status(link, "");
}

/* ---- the watchdog ---- */

/* WATCHDOG_USEC; 0 if it is meant for another process. */
static uint64_t watchdog_us(void)
{
	const char *pid = getenv("WATCHDOG_PID");
	const char *us = getenv("WATCHDOG_USEC");

	if (us == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(us, NULL, 10);
}

static void start_ticking(struct service_link *link)
{
	uint64_t us = watchdog_us(), every_us = STATUS_US;
	struct timeval every;

	if (us == 0 && getenv("NOTIFY_SOCKET") == NULL)
		return;
	link->share_ns = (int64_t)(us / SHARES) * NS_PER_US;
	if (us > 0 && us / SHARES < every_us)
		every_us = us / SHARES;
	every.tv_sec = (time_t)(every_us / 1000000);
	every.tv_usec = (suseconds_t)(every_us % 1000000);
	link->tick =
	    event_new(link->base, -1, EV_PERSIST, service_ticked, link);
	if (link->tick == NULL || event_add(link->tick, &every) < 0)
		log_event(LOG_LEVEL_WARNING, "watchdog-failed",
		    LOG_TEXT("there is no timer for the service manager's "
			     "watchdog, which will end the daemon"));
}

/* ---- states ---- */

/* Writes a line and closes the descriptor, as s6 expects. A script can wait for
 * the line too. */
static void write_ready_fd(struct service_link *link)
{
	int fd = link->cfg.ready_fd;

	if (fd < 0)
		return;
	if (write(fd, "ready\n", 6) < 0)
		log_event(LOG_LEVEL_WARNING, "ready-fd-failed",
		    LOG_NUM("fd", fd), LOG_STR("error", strerror(errno)),
		    LOG_TEXT("who waits there is not told that it serves"));
	close(fd);
	link->cfg.ready_fd = -1;
}

void service_ready(struct service_link *link)
{
	write_ready_fd(link);
	start_ticking(link);
	send_status(link, "READY=1\n");
}

void service_reloading(struct service_link *link)
{
	int64_t now_us = SYS(link->cfg.sys, now_mono) / NS_PER_US;
	const struct service_facts facts = ask_facts(link);
	char state[STATE_BYTES];

	snprintf(state, sizeof(state),
	    "RELOADING=1\nMONOTONIC_USEC=%" PRId64
	    "\nSTATUS=reading the configuration",
	    now_us);
	/* READY=1 ends a reload, and a recovering daemon is not ready yet, so
	 * it says nothing. */
	if (facts.is_serving)
		notify_manager(state);
}

void service_reloaded(struct service_link *link)
{
	const struct service_facts facts = ask_facts(link);

	if (facts.is_serving)
		send_status(link, "READY=1\n");
}

void service_stopping(struct service_link *link)
{
	const struct service_facts facts = ask_facts(link);
	char state[STATE_BYTES];

	snprintf(state, sizeof(state),
	    "STOPPING=1\nSTATUS=finishing %" PRIu64 " transactions",
	    facts.in_work);
	notify_manager(state);
}
