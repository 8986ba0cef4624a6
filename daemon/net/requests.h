/*
 * What becomes of a decoded request: to the scheduler, or answered here. Loop
 * thread; nothing blocks.
 */
#ifndef NET_REQUESTS_H
#define NET_REQUESTS_H

#include "daemon/net/net_internal.h"

/* Takes REQ's content over; the answer reaches CONN now or later. ARG is the
 * struct net. */
void requests_take(void *arg, struct conn *conn, struct refd_request *req);

/* What is said to a new connection. */
void requests_hello(const struct net *net, struct refd_hello *hello);

#endif
