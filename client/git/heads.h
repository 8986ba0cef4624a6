/*
 * What is checked out in a repository's work trees: what find_shared_symref()
 * of git's worktree.c finds for HEAD. A branch that is being rebased or
 * bisected on a detached HEAD is checked out too.
 *
 * Reads a few small files; one thread.
 */
#ifndef CLIENT_GIT_HEADS_H
#define CLIENT_GIT_HEADS_H

#include "client/git/gitdir.h"

/* Owns its strings. */
struct heads {
	char **names; /* refs/heads/..., one or two for a work tree */
	size_t nr, size;
	/* Where the HEAD of gd->path leads to at last, be it born or not;
	 * "HEAD" when it is detached; NULL when it can't be read. */
	char *own;
	bool own_is_symlink;
};

/* IS_BARE: there is no main work tree. */
void heads_find(struct heads *h, const struct gitdir *gd, bool is_bare);
void heads_done(struct heads *h);
/* Is NAME checked out somewhere? */
bool heads_have(const struct heads *h, const char *name);

#endif
