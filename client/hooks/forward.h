/*
 * If core.hooksPath leads to refd's hooks, git looks for hook files nowhere
 * else. So forward.sh runs the repository's own hook with the same name, as git
 * would. The installation makes a link to forward.sh for every hook of git but
 * proc-receive, because proc-receive is refd's own hook.
 */
#ifndef CLIENT_HOOKS_FORWARD_H
#define CLIENT_HOOKS_FORWARD_H

#include "proto/lib/cli.h"

/* Is PATH the forwarder? */
bool forward_is(const char *path);
/* Can git run the forwarder in the directory HOOKS? All hooks there but
 * proc-receive are links to one file. */
bool forward_is_in(const char *hooks);
/*
 * The actual hook if git runs PATH in the repository COMMON: PATH, or the
 * target of the forwarder, which need not exist. Owned by the caller.
 */
char *forward_follow(const char *path, const char *common);

#endif
