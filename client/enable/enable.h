/*
 * The parts of "refd enable" and "refd disable". Order matters in all of
 * them: where the configuration names a hook that isn't there, git refuses
 * every push, so the hook comes first and goes last.
 *
 * Blocking; one thread. What was done is said on standard output, a line
 * each; failures are said on standard error and returned as false.
 */
#ifndef CLIENT_ENABLE_ENABLE_H
#define CLIENT_ENABLE_ENABLE_H

#include <limits.h>

#include "client/enable/site.h"
#include "client/git/gitdir.h"

struct wishes {
	const char *socket; /* to be set as refd.socket, or NULL */
	bool fsync;
	bool repair;         /* nothing new, only what was done once */
	const char **chains; /* prefixes of another hook's refs */
	size_t nr_chains;
	char *hooks;         /* the shared hooks directory, absolute */
	char self[PATH_MAX]; /* this program, which is the hook */
};

/* Both values of receive.procReceiveRefs are needed for every ref to reach the
 * hook. Git wants a key for each: a list in one value does nothing. */
extern const char *const enable_refs[2];
/* Keys and values that make git durable beside refd, where they are unset. */
extern const char *const enable_fsync[2][2];

/* ---- repositories and templates ---- */

/* W is NULL to disable. */
bool enable_repository(const char *dir, const struct wishes *w);
bool enable_template(const char *dir, const struct wishes *w);

/* ---- what would break (enable_check.c) ---- */

/* False: an older refd enabled the site and left RECORD. Frees the path RECORD.
 * */
bool check_former(const struct site *site, char *record);
/* Whether refd serves such a repository at all. */
bool check_format(const struct site *site, const struct gitconfig *own);
/* Whether its pushes would go wrong. */
bool check_pushes(const struct site *site, const struct gitconfig *all);
/* Whether this user may change what has to be changed. */
bool check_writable(const struct site *site, bool needs_hook);
/* What makes refd's promises weaker there. */
void warn_weak(const struct gitdir *gd, const struct gitconfig *all,
    const char *hooks);

/* ---- all repositories below a directory (enable_system.c) ---- */

/* ROOTS: real paths with a slash at the end; none: what was enabled. W is NULL
 * to disable. */
bool enable_system(const char **roots, size_t nr, const struct wishes *w);

/* ---- the list (enable_list.c) ---- */

bool list_enabled(bool as_json);

/* ---- the command lines (enable.c) ---- */

extern const struct command enable_command, disable_command;

#endif
