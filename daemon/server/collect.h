/*
 * Collects the metrics from the loop, its connections, the scheduler and the
 * store. Loop thread; nothing blocks.
 */
#ifndef SERVER_COLLECT_H
#define SERVER_COLLECT_H

#include "daemon/metrics/metrics.h"

/* All metrics at this moment, to be freed; NULL when out of memory. SERVER
 * is the struct server. */
struct metrics *collect_metrics(void *server);

#endif
