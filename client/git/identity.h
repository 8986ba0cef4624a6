/*
 * Who moves the refs: the committer that goes into reflogs, by the rules of
 * git's ident.c for a log (which never refuses for want of a name):
 * GIT_COMMITTER_*, committer.*, user.*, EMAIL, the password file.
 * One thread; may read the password file and ask for the host's name.
 */
#ifndef CLIENT_GIT_IDENTITY_H
#define CLIENT_GIT_IDENTITY_H

#include "client/git/gitconfig.h"

/* Does the environment leave name or address to the configuration? */
bool identity_needs_config(void);

/* "Name <mail> seconds zone", owned by the caller. NULL when
 * GIT_COMMITTER_DATE has a form that only git reads. */
char *identity_committer(const struct gitconfig *config);

#endif
