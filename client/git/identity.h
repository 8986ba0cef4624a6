/*
 * The committer for reflogs, by the rules of git's ident.c for a log, which
 * accepts a missing name: GIT_COMMITTER_*, committer.*, user.*, EMAIL, the
 * password file. One thread; may read the password file and ask for the host's
 * name.
 */
#ifndef CLIENT_GIT_IDENTITY_H
#define CLIENT_GIT_IDENTITY_H

#include "client/git/gitconfig.h"

/* "Name <mail> seconds zone", owned by the caller. NULL if only git can read
 * the format of GIT_COMMITTER_DATE. */
char *identity_committer(const struct gitconfig *config);

#endif
