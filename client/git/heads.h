/*
 * The branches that are checked out in a repository's work trees, as in
 * find_shared_symref() of git's worktree.c for HEAD. A branch that is being
 * rebased or bisected on a detached HEAD is also checked out.
 *
 * Reads a few small files. With reftables the file HEAD names no ref, so git is
 * asked for each HEAD. One thread.
 */
#ifndef CLIENT_GIT_HEADS_H
#define CLIENT_GIT_HEADS_H

#include "client/git/gitdir.h"

/* Owns its strings, but GD is borrowed. */
struct heads {
	const struct gitdir *gd;
	char **names; /* refs/heads/..., one or two for a work tree */
	size_t nr, size;
	char *own; /* for heads_own() */
	bool is_own_known;
	bool own_is_symlink;
};

/* IS_BARE: there is no main work tree. */
void heads_find(struct heads *h, const struct gitdir *gd, bool is_bare);
/* The final ref of the HEAD of gd->path, also of an unborn branch, "HEAD" if
 * detached, or NULL if unreadable. Borrowed. */
const char *heads_own(struct heads *h);
void heads_done(struct heads *h);
/* Is NAME checked out in any work tree? */
bool heads_have(const struct heads *h, const char *name);

#endif
