/*
 * Tells the service manager (sd_notify(3)) that the daemon serves, reloads or
 * stops, and how much it has done. If the manager asks for it (WatchdogSec= of
 * systemd), also tells it regularly that the daemon is alive. A daemon is alive
 * while its loop turns and no stall keeps it from serving everybody (stall.h).
 *
 * Loop thread; nothing blocks. Without a service manager only the search for
 * stalls is left, because the log reports stalls, too.
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <event2/event.h>

#include "daemon/service/stall.h"

/* The state of the daemon, as the service manager is told. */
struct service_facts {
	bool is_serving; /* neither recovering nor stopping */
	uint64_t transactions;
	uint64_t in_work; /* transactions that are not decided yet */
	size_t connections;
	struct store *store; /* NULL while recovering */
};

struct service_config {
	const struct sys *sys;
	const char *state_dir; /* borrowed */
	int ready_fd; /* gets a line when the daemon serves; -1: none */
	void (*facts)(void *arg, struct service_facts *facts);
	void *arg;
};

/* The fields belong to service.c. Its callers read STALL. */
struct service_link {
	struct service_config cfg;
	struct event_base *base;
	struct stall stall;
	struct event *tick;    /* NULL: there is no service manager */
	int64_t share_ns;      /* part of the watchdog's time; 0: no watchdog */
	uint64_t transactions; /* of the last status */
};

void service_init(struct service_link *link, const struct service_config *cfg,
    struct event_base *base);
void service_done(struct service_link *link);

/* Recovery is over and the daemon serves. */
void service_ready(struct service_link *link);
void service_reloading(struct service_link *link);
void service_reloaded(struct service_link *link);
void service_stopping(struct service_link *link);
/* Searches for stalls. To be called every few seconds, because without a
 * service manager there is no other timer. */
void service_look(struct service_link *link);

#endif
