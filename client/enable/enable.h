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

#include "client/enable/enabled.h"
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

/* Both values are needed for every ref to reach the hook; each with a key of
 * its own is how git wants them (a list in one does nothing). */
extern const char *const enable_refs[2];

bool is_this_program(const char *path);

/* ---- repositories and templates ---- */

bool enable_repository(const char *dir, const struct wishes *w);
bool disable_repository(const char *dir);
bool enable_template(const char *dir, const struct wishes *w);
bool disable_template(const char *dir);

/* What core.fsync and so on are to be, in PLAN. ALL is what is set, as git
 * lists it. */
void plan_durability(const struct gitconfig *all, const struct wishes *w,
    struct enabled *plan);

/* ---- what would break (enable_check.c) ---- */

/* Whether refd serves such a repository at all. */
bool check_format(const struct site *site, const struct gitconfig *own);
/* Whether its pushes would go wrong. */
bool check_pushes(const struct site *site, const struct gitconfig *all);
/* Whether this user may change what has to be changed. */
bool check_writable(const struct site *site, bool needs_hook);
/* What makes refd's promises weaker there. */
void warn_weak(const struct gitdir *gd, const struct gitconfig *all,
    const char *hooks);

/* ---- the hooks that several share (enable_hooks.c) ---- */

/* Where they are, owned; NULL: nowhere yet. */
char *hooks_place(void);
/* refd's in W->hooks, with forwarders; made unless it is there. */
bool hooks_acquire(const struct wishes *w);
/* Taken away again, unless another than USER (a repository's path, or
 * "system") uses it, or it was not made by acquire. */
bool hooks_release(const char *dir, const char *user);

/* ---- all repositories below a directory (enable_system.c) ---- */

/* ROOTS: real paths with a slash at the end; none: what was enabled. */
bool enable_system(const char **roots, size_t nr, const struct wishes *w);
bool disable_system(const char **roots, size_t nr);

/* ---- the list (enable_list.c) ---- */

bool list_enabled(bool as_json);

/* ---- the command lines (enable.c) ---- */

int command_enable(int argc, char **argv);
int command_disable(int argc, char **argv);

#endif
