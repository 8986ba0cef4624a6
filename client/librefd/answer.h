/*
 * Answers made by the client in place of the server: for a transaction with an
 * unknown outcome, and for refs that a stopped daemon did not process.
 *
 * Any thread; nothing blocks. Returns 0, -ENOMEM, or -EPROTO if the results do
 * not belong to the request.
 */
#ifndef CLIENT_LIBREFD_ANSWER_H
#define CLIENT_LIBREFD_ANSWER_H

#include "proto/message.h"

/* Makes REFUSED with a status found by the client. */
int refd_answer_refusal(const struct refd_request *req, enum refd_status status,
    const char *text, struct refd_answer *ans);

/* Are the names of the results those of REQ? */
bool refd_answer_is_complete(const struct refd_request *req,
    const struct refd_answer *ans);

/* Sets the outcome that follows from the results. Without updates, the daemon's
 * outcome stays. Returns -EPROTO if the daemon's outcome claims or denies
 * success, or is unknown, against the results. */
int refd_answer_set_outcome(struct refd_answer *ans);

/*
 * Adds REFD_ABORTED for each update without a result in *ANS, the results of
 * REQ: these updates never happened. Present results keep their order. *ANS is
 * replaced, or unchanged on failure.
 */
int refd_answer_complete(const struct refd_request *req,
    struct refd_answer *ans);

#endif
