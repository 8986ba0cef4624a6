/*
 * The store as the scheduler knows it: each of its calls by a pointer, so that
 * the scheduler can be tried with another. Any thread; nothing blocks.
 */
#ifndef SERVER_HANDOVER_H
#define SERVER_HANDOVER_H

#include "daemon/scheduler/scheduler.h"
#include "daemon/store/store.h"

/* STORE is borrowed by all that comes of it. */
struct scheduler_store handover(struct store *store);

#endif
