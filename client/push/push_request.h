/*
 * One request for some commands of a push, and the verdicts from its answer, in
 * receive-pack's words.
 *
 * One thread. Packing may run git, for the committer's date.
 */
#ifndef CLIENT_PUSH_PUSH_REQUEST_H
#define CLIENT_PUSH_PUSH_REQUEST_H

#include "client/push/push_send.h"
#include "client/request/changes.h"

/* Borrows the commands, and parts of the request from the push_send. */
struct push_request {
	struct push_command **commands;
	struct changes changes;
	struct refd_request req;
};

/* Makes a request for NR commands of D, from AT on. */
void push_request_pack(struct push_request *p, const struct push_send *d,
    enum refd_verb verb, size_t at, size_t nr);
void push_request_done(struct push_request *p);

/* Gives each command its verdict, and reports failures on standard error. */
void push_request_take(const struct push_request *p,
    const struct refd_answer *ans);

/* Gives NR commands without a verdict the reason WHY. */
void push_request_refuse(struct push_command *const *commands, size_t nr,
    const char *why);

#endif
