/*
 * Symbolic refs as they stand in the files just now, without any lock: for
 * what is told, not for what is done. One thread.
 */
#ifndef CLIENT_GIT_SYMREF_H
#define CLIENT_GIT_SYMREF_H

#include "client/git/gitdir.h"

/* Readers of symbolic refs stop here (SYMREF_MAXDEPTH of refs-internal.h). */
#define SYMREF_LINKS_MAX 5

/* What NAME points to, malloc'd; NULL: it is no symbolic ref, or unreadable. */
char *symref_target(const struct gitdir *gd, const char *name);

#endif
