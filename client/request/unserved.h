/*
 * Repositories and environments that refd does not serve, as far as the client
 * knows before it asks the daemon. Git writes the refs there. Reads only the
 * arguments and the environment; one thread.
 */
#ifndef CLIENT_REQUEST_UNSERVED_H
#define CLIENT_REQUEST_UNSERVED_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "proto/message.h"

/* Why refd does not serve a repository with CONFIG, or NULL. Valid until the
 * next call. The daemon decides by the same table (proto/format.h). */
const char *unserved_format(const struct gitconfig *config);
/* The same for the environment too. */
const char *unserved_reason(const struct gitdir *gd,
    const struct gitconfig *config);
/* Why the daemon does not serve a transaction; NULL: ANS says otherwise.
 * Nothing of the transaction is done. Borrowed from ANS, or static. */
const char *unserved_answer(const struct refd_answer *ans);

#endif
