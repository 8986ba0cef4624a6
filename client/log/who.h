/*
 * Who made a change. The kernel tells the daemon the account of a client. All
 * other names come from the client: from its environment, as set by the
 * program that authenticated the user, or from its configuration. So a person's
 * name never stands alone. One thread; reads the password file.
 */
#ifndef CLIENT_LOG_WHO_H
#define CLIENT_LOG_WHO_H

#include "proto/lib/cli.h"
#include "proto/message.h"

/* Adds the account, then the person, or else the address of the SSH client:
 * "git (alice)", "git from 192.0.2.7", "ada"; "uid=103" without an account. */
void who_add(struct text *t, const struct refd_record *rec);

#endif
