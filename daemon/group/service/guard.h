/*
 * The guard of a repository against writes by git, because no other node would
 * get such a write. "refd enable" makes hooks and settings, and its hook
 * reference-transaction refuses git.
 *
 * refd-group guards a new repository before the repository has its id, and each
 * repository for which refd-group fetches. When refd-group starts, it guards
 * all other repositories of the group. So a push to this node gets to refd as
 * soon as this node leads.
 *
 * Any thread; blocks.
 */
#ifndef GROUP_SERVICE_GUARD_H
#define GROUP_SERVICE_GUARD_H

#include "daemon/group/service/group_config.h"

struct guard {
	char *refd;         /* the program */
	const char *socket; /* daemon.socket, or NULL */
};

/* Makes the guard of the repository DIR, unless it is there. CANCEL: readable
 * ends the work; -1: never. False: the log has the reason. */
bool guard_make(const struct guard *guard, const char *dir, int cancel);
/* The same for all repositories of the group below the root. */
void guard_make_all(const struct group_config *config);
/* Prints an error for each repository of the group below the root that has no
 * guard. True: there is none. */
bool guard_check_all(const struct group_config *config);

#endif
