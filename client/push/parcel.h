/*
 * Some of a push's commands as one request, and what its answer means for each
 * of them, in receive-pack's words.
 *
 * One thread. Packing may run git, for the committer's date.
 */
#ifndef CLIENT_PUSH_PARCEL_H
#define CLIENT_PUSH_PARCEL_H

#include "client/push/deliver.h"
#include "client/request/changes.h"

/* Borrows its commands, and what the request borrows from the delivery. */
struct parcel {
	struct push_command **commands;
	struct changes changes;
	struct refd_request req;
};

/* NR commands of D from AT on. */
void parcel_pack(struct parcel *p, const struct delivery *d,
    enum refd_verb verb, size_t at, size_t nr);
void parcel_done(struct parcel *p);

/* Gives each command its verdict, and says at length on standard error what
 * went wrong. */
void parcel_take(const struct parcel *p, const struct refd_answer *ans);

/* The same reason for NR commands that have none yet. */
void parcel_refuse(struct push_command *const *commands, size_t nr,
    const char *why);

#endif
