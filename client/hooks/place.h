/*
 * The place where git runs a repository's hooks: the directory and the
 * environment variables. A hook finds the repository by both, so both are set
 * as setup_git_directory() of git's setup.c sets them. One thread.
 */
#ifndef CLIENT_HOOKS_PLACE_H
#define CLIENT_HOOKS_PLACE_H

#include "client/git/gitdir.h"

/* Owns its strings. */
struct place {
	char *dir;     /* absolute */
	char *git_dir; /* GIT_DIR; NULL: unset, the directory is .git */
	char *prefix;  /* GIT_PREFIX; NULL: unchanged */
	bool is_bare;  /* found from a directory inside the repository */

	char **env;   /* the environment for hooks */
	char *set[3]; /* strings in env that are not borrowed */
	size_t nr_set;
};

/* NAMED: the repository as in --git-dir or GIT_DIR, or NULL. */
void place_find(struct place *p, const struct gitdir *gd, const char *named);
/* For a program that git runs as a hook: the present directory and
 * environment. */
void place_here(struct place *p);
/* Makes p->env. */
void place_make_environment(struct place *p);
/* Does git name GD's files, except locks, with the directory as it was found,
 * and not with the real path? *SPELLED is this directory, borrowed. */
bool place_spells(const struct place *p, const struct gitdir *gd,
    const char **spelled);
void place_done(struct place *p);

#endif
