/*
 * The metrics over HTTP, for Prometheus: GET /metrics. For load balancers: GET
 * /leader is answered by 200 if the node takes writes, GET /follower if it may
 * serve reads, otherwise 503; the body is the role. Answers never have the name
 * of a repository or a user.
 *
 * Any process may ask, so a connection gets one answer within a few seconds. If
 * there are too many connections, the address with the most of them loses its
 * oldest one, so that nobody keeps out the others.
 *
 * Loop thread; an answer takes as long as writing some 20 KB.
 */
#ifndef METRICS_METRICS_HTTP_H
#define METRICS_METRICS_HTTP_H

#include <event2/event.h>

#include "daemon/metrics/metrics.h"

struct metrics_http;

/* COLLECT returns the metrics, to be freed, or NULL when out of memory. Returns
 * NULL when out of memory. */
struct metrics_http *metrics_http_new(struct event_base *base,
    struct metrics *(*collect)(void *arg), void *arg);
/* Takes ownership of FD, a new non-blocking connection, and answers one
 * request. HTTP is the struct metrics_http. */
void metrics_http_accept(void *http, int fd);
/* Hangs up on all askers. NULL is fine. */
void metrics_http_free(struct metrics_http *http);

#endif
