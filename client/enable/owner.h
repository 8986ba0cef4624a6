/*
 * Root works as the owner of what it changes, so that what it leaves is the
 * owner's. One thread; a failure ends the program.
 */
#ifndef CLIENT_ENABLE_OWNER_H
#define CLIENT_ENABLE_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>

#include "client/base/cli.h"

/*
 * As stat(2) of DIR, a path without links. Root works by path as the owner, so
 * root goes only where nobody but that owner could exchange a directory on the
 * way: false otherwise, and when DIR cannot be found; WHY gets a sentence.
 */
bool owner_stat(const char *dir, struct stat *st, struct text *why);
/* As the owner of ST, in its groups and with its home, until owner_leave().
 * Nothing where this is not root, or the owner is root. */
void owner_enter(const struct stat *st);
void owner_leave(void);
/* Whether enter would make this process the owner, or it is already. */
bool owner_may_be(const struct stat *st);

#endif
