/*
 * Releases a repository from the journal of its daemon, so that a daemon with
 * another journal can take it: for example after the package was purged. The
 * uuid stays, so the same journal finds the history again.
 *
 * Blocking; one thread; a part of the work of an owner that forks, because a
 * failure ends the program.
 */
#ifndef CLIENT_ENABLE_RELEASE_H
#define CLIENT_ENABLE_RELEASE_H

#include "client/git/gitdir.h"

/* True: released, or there was nothing to release. False: no daemon serves the
 * repository, and only its own daemon knows which updates wait. */
bool release_repository(const struct gitdir *gd);

#endif
