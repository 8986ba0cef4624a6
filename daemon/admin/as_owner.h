/*
 * The account of a command. If root runs a command on the state or a repository
 * of another account, a worker does the work as this account, so that one
 * owner's files cost no other owner and nothing of root.
 */
#ifndef ADMIN_AS_OWNER_H
#define ADMIN_AS_OWNER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs RUN as the owner of the directory PATH, or in this process if the owner
 * is its account. HEAR, or NULL, gets what RUN tells: see proto/lib/worker.h.
 * Call before threads exist. Returns the result of RUN, or FAILED, and a
 * message was printed.
 */
int as_owner(const char *path, int failed, int (*run)(void *arg),
    int (*hear)(void *arg, const char *data, size_t len), void *arg);

#endif
