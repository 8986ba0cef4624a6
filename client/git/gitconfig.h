/*
 * git's configuration as git itself resolves it, from one run of
 * "git config -z --list" (system, user, repository, worktree, includes,
 * environment). Blocking; one thread.
 */
#ifndef CLIENT_GIT_GITCONFIG_H
#define CLIENT_GIT_GITCONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "client/base/cli.h"
#include "client/git/gitdir.h"

/* Zero-initialised says nothing on anything. */
struct gitconfig {
	struct text list;
};

/* Runs git; its failure ends the program. GD may be NULL: no repository. */
void gitconfig_load(struct gitconfig *config, const struct gitdir *gd);
void gitconfig_done(struct gitconfig *config);

/*
 * Whether loading could bring up any of WORDS (parts of keys, lower case,
 * NULL at the end): false only where none stands in any file that git would
 * read, nor may one be included or come from the environment. That costs a
 * few small reads where a process costs a millisecond.
 */
bool gitconfig_might_say(const struct gitdir *gd, const char *const words[]);

/* The last value of KEY (spelled as git lists it: section and variable in
 * lower case), borrowed; NULL when unset, "true" for a key without "=". */
const char *gitconfig_get(const struct gitconfig *config, const char *key);
/* As git reads a boolean, dying of what is none; UNSET when it isn't
 * there. */
bool gitconfig_bool(const struct gitconfig *config, const char *key,
    bool unset);
/* Walks all entries; *AT starts at 0. */
bool gitconfig_next(const struct gitconfig *config, size_t *at,
    const char **key, const char **value);

#endif
