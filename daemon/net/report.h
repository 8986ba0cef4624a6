/*
 * The daemon about itself: the answers to status and stats. Loop thread;
 * nothing blocks.
 */
#ifndef NET_REPORT_H
#define NET_REPORT_H

#include "daemon/net/net_internal.h"

void report_status(struct net *net, struct conn *conn, uint32_t request_id);
void report_stats(struct net *net, struct conn *conn, uint32_t request_id);
/* For Prometheus: its text, in parts. */
void report_metrics(struct net *net, struct conn *conn, uint32_t request_id);

#endif
