/*
 * Decoded requests: to the scheduler, or answered at once. Loop thread; nothing
 * blocks.
 */
#ifndef SERVER_REQUESTS_H
#define SERVER_REQUESTS_H

#include "daemon/server/conn.h"

struct server;

/* Answers a request now or later, and may take the content of REQ. */
typedef void requests_verb_fn(struct server *server, struct conn *conn,
    struct refd_request *req);

/* Takes ownership of the content of REQ. The answer reaches CONN now or later.
 * A transaction or a session becomes a struct txn, and goes to
 * scheduler_submit(). SERVER is the struct server. */
void requests_take(void *server, struct conn *conn, struct refd_request *req);

/* Fills in the greeting of a new connection. */
void requests_hello(const struct server *server, struct refd_hello *hello);

#endif
