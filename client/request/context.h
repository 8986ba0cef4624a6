/*
 * What a request tells of the one who asks: repository, umask, committer,
 * configuration, trace. Blocking; one thread.
 */
#ifndef CLIENT_REQUEST_CONTEXT_H
#define CLIENT_REQUEST_CONTEXT_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "proto/message.h"

/* Loads the configuration unless it is plain that it would say nothing of
 * use: no git runs then. */
void context_config(struct gitconfig *config, const struct gitdir *gd);

/* "Name <mail> seconds zone", owned by the caller; asks git for dates that
 * only git can read. */
char *context_committer(const struct gitconfig *config,
    const struct gitdir *gd);

/* A transaction from here, without updates. It borrows from GD and CONFIG. */
void context_request(struct refd_request *req, const struct gitdir *gd,
    const struct gitconfig *config);

#endif
