/*
 * The service: reads the feed, and delivers every change to every endpoint, at
 * least once, in the order of each repository.
 */
#ifndef CLIENT_DELIVER_DELIVER_H
#define CLIENT_DELIVER_DELIVER_H

#include "client/deliver/endpoints.h"
#include "client/deliver/outbox.h"

/* Runs until SIGTERM or SIGINT, then waits for the attempts under way. A
 * failure of the state ends the program. */
void deliver_run(const struct endpoints *endpoints, struct outbox *outbox,
    const char *socket);

#endif
