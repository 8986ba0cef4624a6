/*
 * What refd does not serve, as far as it is plain before a daemon is asked:
 * such a repository, or such an environment, is left to git. Reads only what
 * it is given and the environment; one thread.
 */
#ifndef CLIENT_REQUEST_UNSERVED_H
#define CLIENT_REQUEST_UNSERVED_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"

/* Why only git can write there, or NULL. Static. */
const char *unserved_reason(const struct gitdir *gd,
    const struct gitconfig *config);

#endif
