/*
 * Forwarders: where core.hooksPath leads to refd's hooks, each runs the
 * repository's own hook of its name, as git would have.
 */
#ifndef CLIENT_HOOKS_FORWARD_H
#define CLIENT_HOOKS_FORWARD_H

#include "client/base/cli.h"

/* Every hook that git looks for in a directory of hooks, but proc-receive;
 * NULL at the end. */
extern const char *const forward_names[];

/* The script that stands under NAME, the same for almost all. */
void forward_text(const char *name, struct text *t);
/* Whether PATH is one. */
bool forward_is(const char *path);
/*
 * The hook that is meant where git would run PATH in the repository COMMON:
 * PATH itself, or what it forwards to, which need not exist. Owned.
 */
char *forward_follow(const char *path, const char *common);

#endif
