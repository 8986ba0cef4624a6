/*
 * The part of a request that describes the caller: repository, umask,
 * committer, configuration, trace. Blocking; one thread.
 */
#ifndef CLIENT_REQUEST_CONTEXT_H
#define CLIENT_REQUEST_CONTEXT_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "proto/message.h"

/* gitconfig_load(), and a check of the value that every update needs. */
void context_config(struct gitconfig *config, const struct gitdir *gd);

/* Returns "Name <mail> seconds zone", owned by the caller. Runs git for dates
 * that only git can parse. */
char *context_committer(const struct gitconfig *config,
    const struct gitdir *gd);

/* Makes a transaction without updates, and the caller sets the object format.
 * REQ borrows from GD and CONFIG. */
void context_request(struct refd_request *req, const struct gitdir *gd,
    const struct gitconfig *config);

#endif
