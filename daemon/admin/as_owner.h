/*
 * The account of a command. If root runs a command on the state or a repository
 * of another account, a worker does the work as this account, so that one
 * owner's files cost no other owner and nothing of root.
 */
#ifndef ADMIN_AS_OWNER_H
#define ADMIN_AS_OWNER_H

#include "proto/lib/worker.h"

/*
 * Does WORK as the owner of the directory PATH, or in this process if the owner
 * is its account. A limit of 0 seconds is a week. Call before threads exist.
 * Returns the result of the work, or FAILED, and a message was printed.
 */
int as_owner(const char *path, int failed, struct work work);

#endif
