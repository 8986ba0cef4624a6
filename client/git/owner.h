/*
 * Root works in a repository with the rights of the owner, in a worker
 * (proto/lib/worker.h): so root's rights never meet the files of another user,
 * and new files belong to the owner. One thread; blocks until the work is done.
 */
#ifndef CLIENT_GIT_OWNER_H
#define CLIENT_GIT_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>

#include "client/git/gitdir.h"
#include "proto/lib/owned.h"
#include "proto/lib/worker.h"

/* owned_find(); WHY gets a sentence. */
bool owner_find(struct owned *o, const char *dir, struct text *why);

/*
 * The repository in O, which may be the top of a work tree. For a command of
 * root, all that leads there must belong to the owner of O, because a file
 * ".git" or "commondir" of one user could otherwise lead root to the repository
 * of another. Runs as the owner. False with *WHY.
 */
bool owner_gitdir(struct gitdir *gd, const struct owned *o, struct text *why);

/* Is this process the owner? For root, only in the work of owner_run(). */
bool owner_is_here(const struct stat *st);
/*
 * Does WORK as the owner of O: in a worker if this process is of root, else
 * here. A limit of 0 is the usual limit. The result is that of worker_run(); if
 * it is negative, WHY gets a sentence.
 */
int owner_run(const struct owned *o, struct work work, struct text *why);
/* owner_find(), which fills O for WORK, and owner_run(), after which O is
 * empty. */
int owner_work(struct owned *o, const char *dir, struct work work,
    struct text *why);

#endif
