/*
 * The store for the scheduler, as a table of calls. Tests give the scheduler a
 * different table. Any thread; nothing blocks.
 */
#ifndef SERVER_HANDOVER_H
#define SERVER_HANDOVER_H

#include "daemon/scheduler/scheduler.h"
#include "daemon/store/store.h"

/* The result borrows STORE. */
struct scheduler_store handover(struct store *store);

#endif
