/*
 * The gate: a hook reference-transaction which is a link to refd ("refd enable
 * --gate"). It is no hook of the user: refd records its own updates itself. The
 * hook that was there before has a second name, and the gate runs it.
 *
 * Blocking; one thread.
 */
#ifndef CLIENT_HOOKS_GATE_LINK_H
#define CLIENT_HOOKS_GATE_LINK_H

#include "client/base/cli.h"

#define GATE_LINK_NAME    "reference-transaction"
#define GATE_LINK_CHAINED ".refd-chained"

/* Is PATH a link to a program with the name refd, or to this program? */
bool gate_link_is(const char *path);
/* The user's hook: PATH, or the hook behind the gate at PATH, which need not
 * exist. Owned by the caller. */
char *gate_link_follow(const char *path);

#endif
