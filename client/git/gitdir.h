/*
 * Finds the repository, as setup_git_directory_gently() of git's setup.c.
 *
 * The rule of ownership is git's (gitdir.c): a repository that was searched, or
 * whose path a person has typed, must belong to this user, or be listed in
 * safe.directory. Otherwise its owner would decide which hooks run here, and
 * which daemon is believed. The path in GIT_DIR or --git-dir is trusted, as by
 * git, because receive-pack has checked the repository before it runs a hook.
 */
#ifndef CLIENT_GIT_GITDIR_H
#define CLIENT_GIT_GITDIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/lib/cli.h"

/* Zero-initialised is empty. Owns its strings, which are real paths. */
struct gitdir {
	char *path; /* a linked worktree has its own */
	char *common;
	uint64_t dev, ino; /* of common */
	uid_t owner;       /* of common */
	char *top;         /* if searched: where it was found; else NULL */
	bool is_linked;    /* through a file ".git" */
	/* The refs are in reftables: gitconfig_is_reftable(). The caller sets
	 * this when the configuration is read. */
	bool is_reftable;
};

/* DIR is the value of --git-dir or GIT_DIR. NULL: searches from the current
 * directory upwards. On failure returns false and *WHY (cleared first) in git's
 * words. */
bool gitdir_find(struct gitdir *gd, const char *dir, struct text *why);
/* gitdir_find(), but a failure ends the program. */
void gitdir_require(struct gitdir *gd, const char *dir);
/* DIR, typed by a person, is a repository or the top of a work tree; parents
 * are not searched. As "git -C DIR", but a bare repository is named here, so
 * safe.bareRepository does not matter. */
bool gitdir_at(struct gitdir *gd, const char *dir, struct text *why);
/* Like gitdir_at(), or like gitdir_find() if DIR is NULL, but without git's
 * rules about owners. The owner of the repository then decides about settings
 * and hooks. So a caller must use neither, or must have become the owner before
 * (scripts/check-layers has the names of such callers). */
bool gitdir_locate(struct gitdir *gd, const char *dir, struct text *why);
void gitdir_done(struct gitdir *gd);

#endif
