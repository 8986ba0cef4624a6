/*
 * Reads the files from which git takes its configuration: the system's file,
 * the user's files, the repository's "config" and, with
 * extensions.worktreeConfig, "config.worktree". A process of git would take
 * milliseconds, so a few small reads replace it. The order is that of
 * do_git_config_sequence() of git's config.c. The syntax is that of
 * git_parse_source() (proto/lib/config_file.h).
 *
 * The result is git's, or there is none, and the caller then runs git. So a
 * doubt costs time, but never gives a wrong setting. There is no result if
 *	- the environment has settings, or names another repository layout
 *	- the build of git decides about the place of the system's file
 *	- a file is malformed, too large, not regular or not readable
 *	- a file is included in another way than by "refd enable"
 *	- a setting changes where or how git reads (core.worktree, a format of
 *	  the repository that refd does not serve)
 *	- extensions.* is in another file than the repository's "config": git
 *	  ignores it there
 *	- versions of git read a value differently (tabs)
 *
 * Blocking; one thread.
 */
#ifndef CLIENT_GIT_CONFIGFILES_H
#define CLIENT_GIT_CONFIGFILES_H

#include "client/git/gitdir.h"
#include "proto/lib/cli.h"

/* Appends all entries as "git config -z --list" prints them. The repository's
 * entries begin at *OWN of LIST. GD is NULL without a repository. False if only
 * git knows, and LIST then has only a part. */
bool configfiles_list(struct text *list, const struct gitdir *gd, size_t *own);

/* The same for the content of a single file, without a repository. Pure. */
bool configfiles_add(struct text *list, const char *data, size_t len);

#endif
