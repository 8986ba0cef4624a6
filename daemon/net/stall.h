/*
 * What hangs: a flush that has not come back for a while, and a stage of the
 * store whose thread has been at one repository, file system or file for a
 * while. The log says so, and that it is over; so do the status and the
 * numbers. Whether to end the daemon over it, which is the service manager's to
 * do, is judged here:
 *
 *	the journal's flush	yes: nothing is answered before it is back, and
 *				the next start finishes what was acknowledged
 *	all threads of a stage	yes, if each update passes it: nobody is served
 *	that updates pass
 *	another flush, or some	no: who is on other disks, or has no new
 *	of the threads		objects, is served; the next start would wait
 *				for the same disk, and then for all. Nor can
 *				one that is merely slow, as a syncfs is behind
 *				gigabytes of somebody's, be told from it
 *
 * Loop thread; nothing blocks.
 */
#ifndef NET_STALL_H
#define NET_STALL_H

#include "daemon/net/net_internal.h"
#include "daemon/base/key_values.h"

/* For how long a thread is at one thing before the status tells it. */
#define STALL_TOLD_NS (5 * 1000000000LL)

/* LIMIT_NS: how long a flush, or a thread's work, may take. Only while there is
 * a store. True: nobody is served. */
bool stall_look(struct net *net, int64_t limit_ns);
/* Is nobody served, with so many threads stuck? */
bool stall_stops_all(const struct store_progress progress[STORE_STAGES]);

/* For how long the flush has hung that was seen at the last look, begun seconds
 * counted; 0: none. */
uint64_t stall_seconds(const struct net *net);
/* Where; "" for none. */
const char *stall_path(const struct net *net);

/* Of each stage: for how long its longest work has lasted, and how many of its
 * threads have been at work for more than STALL_TOLD_NS. Zeroes where there is
 * no store. */
void stall_count(struct net *net, uint64_t seconds[STORE_STAGES],
    uint64_t stuck[STORE_STAGES]);
/* Adds a row for each stage that is stalled now; SHOWS_PATHS: to somebody who
 * may know others' repositories. */
void stall_pairs(struct net *net, struct key_values *kv, bool shows_paths);

#endif
