/*
 * Forwarders: if core.hooksPath leads to refd's hooks, a forwarder runs the
 * repository's own hook with the same name, as git would.
 */
#ifndef CLIENT_HOOKS_FORWARD_H
#define CLIENT_HOOKS_FORWARD_H

#include "client/base/cli.h"

/* All hooks that git looks for in a directory of hooks, except proc-receive;
 * NULL at the end. */
extern const char *const forward_names[];

/* The script for the hook NAME; almost all scripts are equal. */
void forward_text(const char *name, struct text *t);
/* Is PATH a forwarder? */
bool forward_is(const char *path);
/*
 * The actual hook if git runs PATH in the repository COMMON: PATH, or the
 * target of a forwarder, which need not exist. Owned by the caller.
 */
char *forward_follow(const char *path, const char *common);

#endif
