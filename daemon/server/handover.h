/*
 * The store as the scheduler knows it: a table of calls, so that tests can run
 * the scheduler with another store. Any thread; nothing blocks.
 */
#ifndef SERVER_HANDOVER_H
#define SERVER_HANDOVER_H

#include "daemon/scheduler/scheduler.h"
#include "daemon/store/store.h"

/* The result borrows STORE. */
struct scheduler_store handover(struct store *store);

#endif
