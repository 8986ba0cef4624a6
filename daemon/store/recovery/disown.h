/*
 * Makes a repository ownerless: removes the id, which names the journal, and
 * the locks that the daemon of this journal left. All else in refd/ stays. One
 * thread; blocks; nothing logs.
 */
#ifndef STORE_DISOWN_H
#define STORE_DISOWN_H

#include "daemon/base/sys.h"
#include "proto/limits.h"

/* ARG is a git-dir, a common dir, or a work tree with .git. PATH gets the path
 * of the repository, and the number of removed locks is added to *UNLOCKED. A
 * repository that is ownerless already is a success. After a failure *WHY is a
 * sentence, to be freed. -EAGAIN: a daemon serves the repository. */
int disown_repo(const struct sys *sys, const char *arg,
    char path[REFD_PATH_MAX], size_t *unlocked, char **why);

#endif
