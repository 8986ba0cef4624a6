/*
 * The present state of symbolic refs, read without locks, and so for messages,
 * but not for decisions. One thread.
 *
 * Refs in files: a small file is read. Refs in reftables: a process for each
 * question would take milliseconds, so git lists the names of all symbolic refs
 * at the first question, and the list stays until symref_forget(). For each
 * symbolic ref, git is asked for the target. git does not list symbolic refs
 * without a value, so of these only HEAD has a target here.
 */
#ifndef CLIENT_GIT_SYMREF_H
#define CLIENT_GIT_SYMREF_H

#include "client/git/gitdir.h"

/* Readers of symbolic refs stop at this depth (SYMREF_MAXDEPTH of
 * refs-internal.h). */
#define SYMREF_LINKS_MAX 5

/* The target of NAME, malloc'd, or NULL if NAME is no symbolic ref, or
 * unreadable. */
char *symref_target(const struct gitdir *gd, const char *name);

/* The refs may have changed since the last question. */
void symref_forget(void);

#endif
