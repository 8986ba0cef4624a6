/*
 * The present state of symbolic refs in the files, read without locks: for
 * messages, and not for decisions. One thread.
 */
#ifndef CLIENT_GIT_SYMREF_H
#define CLIENT_GIT_SYMREF_H

#include "client/git/gitdir.h"

/* Readers of symbolic refs stop at this depth (SYMREF_MAXDEPTH of
 * refs-internal.h). */
#define SYMREF_LINKS_MAX 5

/* The target of NAME, malloc'd; NULL: not a symbolic ref, or unreadable. */
char *symref_target(const struct gitdir *gd, const char *name);

#endif
