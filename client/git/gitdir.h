/*
 * Which repository is meant: what setup_git_directory_gently() of git's
 * setup.c finds, without reading any configuration.
 */
#ifndef CLIENT_GIT_GITDIR_H
#define CLIENT_GIT_GITDIR_H

#include <stdbool.h>
#include <stdint.h>

#include "client/base/cli.h"

/* Zero-initialised is none; owns its strings, which are real paths. */
struct gitdir {
	char *path; /* of a linked worktree: its own */
	char *common;
	uint64_t dev, ino; /* of common */
	char *top;         /* where it was found, by looking; else NULL */
	bool is_linked;    /* through a ".git" that is a file */
};

/* DIR as --git-dir or GIT_DIR name it; NULL: from the current directory up.
 * False, and *WHY (what was there is cleared) in git's words. */
bool gitdir_find(struct gitdir *gd, const char *dir, struct text *why);
/* DIR is a repository or a work tree's top; nothing above it is looked at. */
bool gitdir_at(struct gitdir *gd, const char *dir, struct text *why);
void gitdir_done(struct gitdir *gd);

#endif
