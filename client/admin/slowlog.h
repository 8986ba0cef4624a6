/* The parts of the slow log that other views show, too. One thread. */
#ifndef CLIENT_ADMIN_SLOWLOG_H
#define CLIENT_ADMIN_SLOWLOG_H

#include "client/request/rows.h"
#include "proto/lib/cli.h"

/* Adds the stage of ROW that took the longest, and its time: "queue 1.2 s".
 * ROW is a row "slow" of the answer to REFD_VERB_SLOW. */
void slowlog_add_slowest(struct text *t, const struct row *row);

#endif
