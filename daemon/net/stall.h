/*
 * A disk that hangs: a flush that has not come back for a while. The log says
 * so, and that it is over; so do the status and the numbers. Whether to end the
 * daemon over it, which is the service manager's to do, is judged here:
 *
 *	the journal's flush	yes: nothing is answered before it is back, and
 *				the next start finishes what was acknowledged
 *	another one		no: who is on other disks, or has no new
 *				objects, is served; the next start would wait
 *				for the same disk, and then for all. Nor can
 *				one that is merely slow, as a syncfs is behind
 *				gigabytes of somebody's, be told from it
 *
 * Loop thread; nothing blocks.
 */
#ifndef NET_STALL_H
#define NET_STALL_H

#include "daemon/net/net_internal.h"

/* LIMIT_NS: how long a flush may take. Only while there is a store. True: the
 * journal's hangs. */
bool stall_look(struct net *net, int64_t limit_ns);

/* For how long the flush has hung that was seen at the last look, begun seconds
 * counted; 0: none. */
uint64_t stall_seconds(const struct net *net);
/* Where; "" for none. */
const char *stall_path(const struct net *net);

#endif
