/*
 * The answers to status, stats and metrics. Loop thread; nothing blocks.
 */
#ifndef SERVER_REPORT_H
#define SERVER_REPORT_H

#include "daemon/server/conn.h"

struct server;

void report_status(struct server *server, struct conn *conn,
    uint32_t request_id);
void report_stats(struct server *server, struct conn *conn,
    uint32_t request_id);
/* Text for Prometheus, in parts. */
void report_metrics(struct server *server, struct conn *conn,
    uint32_t request_id);

#endif
