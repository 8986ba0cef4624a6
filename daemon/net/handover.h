/*
 * The store as the engine knows it: each of its calls by a pointer, so that
 * the engine can be tried with another. Any thread; nothing blocks.
 */
#ifndef NET_HANDOVER_H
#define NET_HANDOVER_H

#include "daemon/engine/engine.h"
#include "daemon/store/store.h"

/* STORE is borrowed by all that comes of it. */
struct engine_store handover(struct store *store);

#endif
