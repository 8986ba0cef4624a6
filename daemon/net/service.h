/*
 * What the service manager is told (sd_notify(3)): that the daemon serves, how
 * it is, that it reloads, that it stops; and, where it wants that (systemd's
 * WatchdogSec=), every now and then that it is alive. A daemon is alive while
 * its loop turns and somebody could be served (stall.h).
 *
 * Loop thread; nothing blocks. Without a service manager nothing happens.
 */
#ifndef NET_SERVICE_H
#define NET_SERVICE_H

#include "daemon/net/net_internal.h"

/* Recovery is done. */
void service_ready(struct net *net);
void service_reloading(struct net *net);
void service_reloaded(struct net *net);
void service_stopping(struct net *net);
/* Now and then, with or without a service manager: does anything hang? */
void service_look(struct net *net);
void service_free(struct service *service);

#endif
