/*
 * Writes findings and events of the store to the log. Any thread; blocks as
 * long as a line of the log does.
 */
#ifndef SERVICE_STORE_NOTICES_H
#define SERVICE_STORE_NOTICES_H

#include "daemon/base/log.h"
#include "daemon/store/store.h"

/* One finding of a recovery. LIMIT: NULL is no limit. */
void store_notices_finding(struct log_limit *limit,
    const struct store_found *found);

/* For struct store_config: a finding and an event of a store that serves. */
void store_notices_found(void *arg, const struct store_found *found);
void store_notices_event(enum store_event event, const char *place,
    const char *why);

#endif
