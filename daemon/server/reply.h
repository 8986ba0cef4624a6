/*
 * Answers that several kinds of requests share. Loop thread; nothing blocks.
 */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "daemon/base/key_values.h"
#include "daemon/server/conn.h"

/* Answers the request REQUEST_ID with KV, and empties KV. If KV lacks pairs for
 * want of memory, the answer is a refusal. */
void reply_key_values(struct key_values *kv, struct conn *conn,
    uint32_t request_id);
/* Answers REQ with a refusal. */
void reply_refused(struct conn *conn, const struct refd_request *req,
    enum refd_status status, const char *why);
/* For the scheduler: sends ANS, the answer to a request, to the struct conn
 * that CONN is. */
void reply_from_scheduler(void *conn, const struct refd_answer *ans);

#endif
