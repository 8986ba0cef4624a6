/*
 * The hooks that git itself would run in its place: found as git finds them
 * (core.hooksPath, the hooks directory, the configuration of 2.54 and later),
 * run as git runs them. One thread; blocks while a hook runs.
 */
#ifndef CLIENT_HOOKS_GITHOOK_H
#define CLIENT_HOOKS_GITHOOK_H

#include "client/git/gitconfig.h"
#include "client/hooks/place.h"

/* Owns its path; the rest is borrowed. */
struct githook {
	const char *name; /* such as "update" */
	char *path;       /* as git runs it, from the place's directory */
	bool exists;
	bool by_git;     /* "git hook run" runs it: configuration has some */
	bool is_ignored; /* it is there, and not executable */
};

/* Costs an access(2) where there is none, and a git only where configuration
 * names one (WITH_CONFIGURED). */
void githook_find(struct githook *h, const char *name, const struct gitdir *gd,
    const struct gitconfig *config, const struct place *place,
    bool with_configured);
void githook_done(struct githook *h);

/* Does git know hooks from the configuration? An older one fails at the
 * question, and would not run them either. Runs it. */
bool githook_git_lists(const struct gitdir *gd, const char *name);

/* In git's words, of one that is ignored; once. */
void githook_warn(struct githook *h, bool as_2_39);

/* PLACE has its environment. ARGS ends with NULL. True: the hook ended with
 * success. */
bool githook_run(const struct githook *h, const struct place *place,
    const char *const args[], const struct text *input);

#endif
