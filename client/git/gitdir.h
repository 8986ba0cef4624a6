/*
 * Finds the repository, as setup_git_directory_gently() of git's setup.c,
 * without reading any configuration.
 */
#ifndef CLIENT_GIT_GITDIR_H
#define CLIENT_GIT_GITDIR_H

#include <stdbool.h>
#include <stdint.h>

#include "client/base/cli.h"

/* Zero-initialised is empty. Owns its strings, which are real paths. */
struct gitdir {
	char *path; /* a linked worktree has its own */
	char *common;
	uint64_t dev, ino; /* of common */
	char *top;         /* if searched: where it was found; else NULL */
	bool is_linked;    /* through a file ".git" */
	/* The refs are in reftables: gitconfig_is_reftable(). Set by the
	 * caller, when the configuration is read. */
	bool is_reftable;
};

/* DIR is the value of --git-dir or GIT_DIR. NULL: searches from the current
 * directory upwards. On failure returns false and *WHY (cleared first) in git's
 * words. */
bool gitdir_find(struct gitdir *gd, const char *dir, struct text *why);
/* gitdir_find(), but a failure ends the program. */
void gitdir_require(struct gitdir *gd, const char *dir);
/* DIR is a repository or the top of a work tree; parents are not searched. */
bool gitdir_at(struct gitdir *gd, const char *dir, struct text *why);
void gitdir_done(struct gitdir *gd);

#endif
