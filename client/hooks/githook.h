/*
 * Finds and runs the hooks that git would run, in the same way: core.hooksPath,
 * the directory of hooks, and the configuration of git 2.54 and later. One
 * thread; blocks while a hook runs.
 */
#ifndef CLIENT_HOOKS_GITHOOK_H
#define CLIENT_HOOKS_GITHOOK_H

#include "client/git/gitconfig.h"
#include "client/hooks/place.h"

/* Owns its path, but the rest is borrowed. */
struct githook {
	const char *name; /* such as "update" */
	char *path;       /* path for git, from the place's directory */
	bool exists;
	bool by_git;     /* the configuration has hooks: run "git hook run" */
	bool is_ignored; /* exists, but is not executable */
};

/* Needs an access(2) if there is no hook. A process of git takes milliseconds,
 * so git runs only if the configuration names a hook (WITH_CONFIGURED). */
void githook_find(struct githook *h, const char *name, const struct gitdir *gd,
    const struct gitconfig *config, const struct place *place,
    bool with_configured);
void githook_done(struct githook *h);

/* Does the configuration name such a hook, by hook.<name>.event of git 2.54 and
 * later? */
bool githook_is_configured(const struct gitconfig *config, const char *name);
/* Does git support hooks in the configuration? Runs git. An older git fails
 * here, and would not run such hooks either. */
bool githook_git_lists(const struct gitdir *gd, const char *name);

/* If the hook is ignored, prints git's warning once. */
void githook_warn(struct githook *h, bool as_2_39);

/* Needs PLACE's environment. ARGS ends with NULL. Returns whether the hook
 * succeeded. */
bool githook_run(const struct githook *h, const struct place *place,
    const char *const args[], const struct text *input);

#endif
