/*
 * What an administrator asks on the socket of his own: what is busy and slow,
 * who waits for which lock; pause, drain and resume. Loop thread; nothing
 * blocks.
 */
#ifndef NET_ADMIN_H
#define NET_ADMIN_H

#include "daemon/net/net_internal.h"

/* Answers REQ, one of theirs, at once or later; refuses it where CONN did not
 * come by that socket. */
void admin_take(struct net *net, struct conn *conn,
    const struct refd_request *req);
/* Those that became slow since the last call are logged. */
void admin_log_slow(struct net *net);

#endif
