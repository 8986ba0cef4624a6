/*
 * The parts of "refd enable" and "refd disable". If the configuration names a
 * missing hook, git refuses every push. So the hook is made before the settings
 * and removed after the settings.
 *
 * Blocking; one thread. Actions are reported on standard output
 * (enable_report.h), failures on standard error and returned as false.
 */
#ifndef CLIENT_ENABLE_ENABLE_H
#define CLIENT_ENABLE_ENABLE_H

#include <limits.h>
#include <sys/stat.h>

#include "client/enable/site.h"

struct wishes {
	const char *socket;  /* for refd.socket, or NULL */
	bool gate;           /* --gate */
	const char **chains; /* prefixes of refs for the other hook */
	size_t nr_chains;
	char *hooks;         /* shared_hooks_place(); owned */
	char self[PATH_MAX]; /* this program, which is the hook */
};

/* Both values of receive.procReceiveRefs are needed for every ref to reach the
 * hook. Git wants a key for each: a list in one value does nothing. */
#define ENABLE_PATTERNS "receive.procReceiveRefs"
extern const char *const enable_refs[2];
/* Keys and values that make git durable beside refd, where they are unset. */
extern const char *const enable_fsync[2][2];
/* Keys that are set to false where they are unset. Git would otherwise run `git
 * pack-refs --auto`, which can take updates of refd back, and the daemon packs
 * refs anyway (decision 023). The first key keeps `git maintenance` from
 * packing, and the second key keeps `git gc --auto` from packing. */
extern const char *const enable_no_packing[2];

/* ---- repositories ---- */

/* W is NULL to disable. With IS_LISTED, DIR is from the list, and must lead to
 * no other place. */
bool enable_repository(const char *dir, bool is_listed, const struct wishes *w);
/* Enables DIR again, only if DIR is the common dir WAS. Whatever happens to the
 * work, this process goes on. */
bool enable_checked(const char *dir, const struct stat *was,
    const struct wishes *w);

/* ---- what would break (enable_plan.c) ---- */

/* A boolean of git. A hostile repository must not end the work on other
 * repositories, so an invalid value counts as true. */
bool enable_is_true(const struct gitconfig *config, const char *key);
/* False: pushes would go wrong. */
bool enable_check_pushes(const struct site *site, const struct gitconfig *all);
/* Do values outside of the repository, such as the values of enable_system(),
 * send the repository's pushes to refd? HOOKS: core.hooksPath; NULL: unset. */
bool enable_is_above(const struct gitconfig *all, const char *hooks);

/* ---- all repositories below a directory (enable_system.c) ---- */

/* ROOTS are real paths with a slash at the end, and none means the enabled
 * roots. W is NULL to disable. */
bool enable_system(const char **roots, size_t nr, const struct wishes *w);

/* ---- the commands (enable.c) ---- */

/* For the doctor: the wishes of a command without options. Nothing is reported
 * from now on, and the list is open, until enable_end(). */
void enable_begin(struct wishes *w);
/* False: the refs of a repository could not be imported. */
bool enable_end(struct wishes *w);

#endif
