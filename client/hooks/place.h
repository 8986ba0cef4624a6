/*
 * Where git runs a repository's hooks: the directory, and what it sets in
 * their environment, as setup_git_directory() of git's setup.c leaves them.
 * One thread.
 */
#ifndef CLIENT_HOOKS_PLACE_H
#define CLIENT_HOOKS_PLACE_H

#include "client/git/gitdir.h"

/* Owns its strings. */
struct place {
	char *dir;     /* absolute */
	char *git_dir; /* GIT_DIR there; NULL: unset, it is .git */
	char *prefix;  /* GIT_PREFIX; NULL: as it is */
	bool is_bare;  /* found from inside of the repository itself */

	char **env;   /* the environment as it is there */
	char *set[3]; /* what of it is not borrowed */
	size_t nr_set;
};

/* NAMED: as --git-dir or GIT_DIR name the repository, or NULL. */
void place_find(struct place *p, const struct gitdir *gd, const char *named);
/* Of a program that git runs as a hook: here, and all is set as it is. */
void place_here(struct place *p);
/* Makes p->env. */
void place_make_environment(struct place *p);
/* Does git name files of GD's, but locks, by its directory as it was found, and
 * not by its whole path? That is *SPELLED, borrowed. */
bool place_spells(const struct place *p, const struct gitdir *gd,
    const char **spelled);
void place_done(struct place *p);

#endif
