/*
 * Root changes a repository as the owner of the repository, so that new files
 * belong to the owner. One thread; a failure ends the program.
 */
#ifndef CLIENT_ENABLE_OWNER_H
#define CLIENT_ENABLE_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>

#include "client/base/cli.h"

/*
 * As stat(2) of DIR, a path without links. Root works by path as the owner. So
 * for root the result is false if any user but the owner could exchange a
 * directory on the way. Also false if DIR is missing. WHY gets a sentence.
 */
bool owner_stat(const char *dir, struct stat *st, struct text *why);
/* Until owner_leave(), root acts as the owner of ST, with the groups and the
 * home of the owner. No effect for other users, or if the owner is root. */
void owner_enter(const struct stat *st);
void owner_leave(void);
/*
 * Whether a link at PATH may be followed. False if a user other than root and
 * the present user can have made the link: PATH or the directory around PATH
 * belongs to another user, or others may write to the directory. Also false if
 * PATH is missing.
 */
bool owner_trusts_link(const char *path);
/* Whether this process is the owner, or owner_enter() makes it the owner. */
bool owner_may_be(const struct stat *st);

#endif
