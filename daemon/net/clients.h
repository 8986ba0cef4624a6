/*
 * All connections together: who is let in, who is served in a turn, who is
 * hung up on. Loop thread; nothing blocks.
 */
#ifndef NET_CLIENTS_H
#define NET_CLIENTS_H

#include "daemon/net/net_internal.h"

/* Takes FD over: a connection, or turned away with a refusal. */
void clients_add(struct net *net, int fd, bool is_admin);
/* Those that were touched, for a while. True: some are left, or were touched by
 * that; they are to be served after others had a chance to be heard. */
bool clients_serve(struct net *net);
/* For those that stalled. */
void clients_check(struct net *net);
/* Is there output that somebody has not taken? */
bool clients_owed(const struct net *net);
void clients_hang_up(struct net *net);
/* ARG, the net's, has a connection that says no more. */
void clients_said_all(void *arg, struct conn *conn);

#endif
