/*
 * The answers to status, stats and metrics, from the loop, its connections, the
 * scheduler and the store. Loop thread; nothing blocks.
 */
#ifndef SERVER_REPORT_H
#define SERVER_REPORT_H

#include "daemon/metrics/metrics.h"
#include "daemon/server/requests.h"

/* All metrics at this moment, to be freed; NULL when out of memory. SERVER
 * is the struct server. */
struct metrics *report_collect(void *server);

requests_verb_fn report_status;
/* All metrics by FORM. */
void report_metrics(struct server *server, struct conn *conn,
    uint32_t request_id, metrics_form_fn *form);

#endif
