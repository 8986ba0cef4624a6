/*
 * All the daemon's numbers at one moment, and their two forms: pairs, for
 * `refd stats`, and the text that Prometheus reads. One table names each
 * number once, for both. Loop thread; nothing blocks.
 */
#ifndef NET_NUMBERS_H
#define NET_NUMBERS_H

#include "daemon/net/net_internal.h"
#include "daemon/base/key_values.h"

void numbers_pairs(struct net *net, struct key_values *kv);
/* One pair for each metric: its name, and its part of the text. */
void numbers_metrics(struct net *net, struct key_values *kv);

#endif
