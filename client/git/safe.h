/*
 * git's rules about the repositories that git works in (safe.* in
 * git-config(1)), as in setup.c of git 2.55. Whoever owns a repository decides
 * about its hooks and settings, so both would serve a stranger.
 *
 * Blocking: a few stat(2). Only a repository of another user, and a bare
 * repository, cost a look at git's configuration; the repository's own files
 * do not count there. One thread.
 */
#ifndef CLIENT_GIT_SAFE_H
#define CLIENT_GIT_SAFE_H

#include <stdbool.h>

#include "proto/lib/cli.h"

/*
 * As ensure_valid_ownership(): do GITFILE, WORKTREE and GIT_DIR belong to this
 * user, or does safe.directory name the repository? Root also trusts the user
 * who called sudo. GITFILE and WORKTREE may be NULL. HERE is the directory in
 * which the search began, the meaning of "." in safe.directory. False with *WHY
 * in git's words.
 */
bool safe_owner(const char *gitfile, const char *worktree, const char *git_dir,
    const char *here, struct text *why);

/* May a search use the bare repository DIR (safe.bareRepository)? False with
 * *WHY. */
bool safe_bare(const char *dir, struct text *why);

#endif
