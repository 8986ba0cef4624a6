/*
 * Repositories, environments and refnames that refd does not serve, as far as
 * the client knows before it asks the daemon. Git writes the refs there. Reads
 * only the arguments and the environment; one thread.
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
/* Why refd does not serve U, whatever the repository: a name is too long. NULL:
 * the daemon decides. Valid until the next call.
 *
 * A push, "refd update" and the gate ask here, so that all of them leave the
 * same updates to git. The first two leave the whole transaction, because git
 * and refd together would not be atomic. The gate comes after git, and still
 * records the other refs. */
const char *unserved_update(const struct refd_update *u);
/* Why the daemon does not serve a transaction, and so has done nothing of it,
 * or NULL if ANS says otherwise. Borrowed from ANS, or static. */
const char *unserved_answer(const struct refd_answer *ans);
/* Like unserved_answer(), for writers that could let git do the work, such as
 * pushes. If the daemon has never served the repository GD and refuses GD, its
 * root or its owner is wrong, and git alone would take the push. So a wrong
 * set-up costs no push, unless refd.fallback in CONFIG is "refuse". */
const char *unserved_push(const struct refd_answer *ans,
    const struct gitdir *gd, const struct gitconfig *config);

#endif
