/*
 * Questions to the daemon that are none about a repository of ours: how they
 * reach it, and how they end when they don't. Blocking; one thread.
 */
#ifndef CLIENT_REQUEST_QUESTION_H
#define CLIENT_REQUEST_QUESTION_H

#include "client/refd.h"

/* An answer takes no longer, unless it has to wait for something. */
#define QUESTION_MS 10000

/* Connected, or the end: with 75 where the daemon is away, with 128 where it
 * denies us. OPTION: --socket, or NULL. Without a time to wait one attempt has
 * to do, but a daemon that recovers or drains is there. */
struct refd *question_connect(const char *option, int wait_ms);
/* The same on the socket for administration beside it. */
struct refd *question_connect_admin(const char *option);
/* *ANS is no refusal; or the end. */
void question_call(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);
/* Ends as that for REFUSED, and returns for anything else. */
void question_refused(const struct refd_answer *ans);

#endif
