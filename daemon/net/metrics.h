/*
 * The numbers over HTTP, for Prometheus: GET /metrics on a Unix socket of its
 * own, or on one that was passed in, which may be of any family. Nothing but
 * numbers is told, no name of a repository or a user. Few are served at a time,
 * an answer each: who asks may be anybody.
 *
 * Loop thread; an answer takes as long as it takes to write some 20 KB.
 */
#ifndef NET_METRICS_H
#define NET_METRICS_H

#include "daemon/net/net_internal.h"

struct metrics;

/* FD, listening, is taken over; -1: PATH is bound, with mode 0660. 0, or a
 * negative errno and *WHY as listener_open(). */
int metrics_open(struct net *net, int fd, const char *path,
    struct metrics **metrics, char **why);
/* NULL is fine. */
void metrics_close(struct metrics *metrics);

#endif
