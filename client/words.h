/*
 * Statuses in git's words. Pure.
 */
#ifndef CLIENT_WORDS_H
#define CLIENT_WORDS_H

#include "client/cli.h"
#include "client/gitdir.h"
#include "proto/message.h"

/* What git says after "fatal: " or "error: " when U fails as RES says,
 * appended to OUT. GD, for the path of a lock, may be NULL. */
void words_detail(const struct refd_update *u, const struct refd_result *res,
    const struct gitdir *gd, struct text *out);

/* The reason in a "rejected" line of update-ref --batch-updates; for what
 * git has no word for, the status's own text. */
const char *words_reason(const struct refd_result *res);

/* The reason that a push reports for a ref, with the daemon's own. */
void words_push(const struct refd_update *u, const struct refd_result *res,
    bool atomic, struct text *out);

/* RES's text, or that of its status. */
const char *words_text(const struct refd_result *res);

/* Is that the end of the transaction for want of time or room, and nothing
 * that is wrong with it? */
bool words_is_busy(enum refd_status status);

#endif
