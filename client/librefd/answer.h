/*
 * Answers that the client has to make itself, because the server could not:
 * for a transaction whose outcome can't be learnt, and for the refs that a
 * daemon which stopped half way never came to.
 *
 * Any thread; nothing blocks. 0, -ENOMEM, or -EPROTO where the results are
 * not those of the request.
 */
#ifndef CLIENT_LIBREFD_ANSWER_H
#define CLIENT_LIBREFD_ANSWER_H

#include "proto/message.h"

/* REFUSED with a status of the client's own finding. */
int refd_answer_refusal(const struct refd_request *req, enum refd_status status,
    const char *text, struct refd_answer *ans);

/*
 * Puts REFD_ABORTED where *ANS, the results of REQ, has nothing on an update:
 * those never happened. What is there keeps its order. *ANS is replaced, or
 * left alone on failure.
 */
int refd_answer_complete(const struct refd_request *req,
    struct refd_answer *ans);

#endif
