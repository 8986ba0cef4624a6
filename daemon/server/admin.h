/*
 * Requests of administrators, over a separate socket: busy repositories and
 * clients, slow transactions, locks, pause, drain and resume. Also writes slow
 * transactions, and updates that are answered `io`, to the log.
 *
 * Loop thread; nothing blocks.
 */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "daemon/base/log.h"
#include "daemon/server/conn.h"

struct server;
struct scheduler_io;

/* How far the slow transactions are in the log. */
struct admin_slow {
	struct log_limit limit;
	uint64_t logged; /* number of the last one */
};

void admin_slow_init(struct admin_slow *slow);
/* Logs transactions that became slow since the last call. */
void admin_slow_log(struct server *server);

/* scheduler_io_fn. LIMIT: a struct log_limit. */
void admin_log_io(void *limit, const struct scheduler_io *io);

/* Answers REQ, a request of administrators, at once or later. Refuses REQ if
 * CONN did not come over the administrators' socket. */
void admin_take(struct server *server, struct conn *conn,
    const struct refd_request *req);

#endif
