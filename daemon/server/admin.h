/*
 * Requests of administrators: busy repositories and clients, slow transactions,
 * locks, pause, drain and resume. They come over a separate socket, because its
 * mode decides who is an administrator. Also writes slow transactions, and
 * updates that are answered `io`, to the log.
 *
 * Loop thread; nothing blocks.
 */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "daemon/base/log.h"
#include "daemon/server/requests.h"

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

/* The verbs of administrators. requests.c has checked who asks and, for all
 * verbs but top, that the daemon serves. CONN gets the answer now. Only drain
 * is answered later, when nothing waits any more. REQ is borrowed. */
requests_verb_fn admin_answer_top, admin_answer_slow, admin_answer_locks,
    admin_pause, admin_drain, admin_resume;

#endif
