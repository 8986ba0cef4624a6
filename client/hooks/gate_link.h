/*
 * The gate: a hook reference-transaction which is a link to refd ("refd enable
 * --gate"). refd records its own updates itself, so the gate is no hook of the
 * user, and refd does not run it. Git runs only one hook with this name, so the
 * hook that was there before gets a second name, and the gate runs it.
 *
 * Blocking; one thread.
 */
#ifndef CLIENT_HOOKS_GATE_LINK_H
#define CLIENT_HOOKS_GATE_LINK_H

#include "proto/lib/cli.h"

#define GATE_LINK_NAME    "reference-transaction"
#define GATE_LINK_CHAINED ".refd-chained"

/* Is PATH the program that runs, perhaps behind links? */
bool gate_link_is_this_program(const char *path);
/* Is PATH a link to a program with the name refd, or to this program? */
bool gate_link_is(const char *path);
/* Does git, which finds its hooks in HOOKS, run the gate in the repository
 * COMMON? */
bool gate_link_is_run(const char *hooks, const char *common);
/* Does git run a hook of the user there, alone or behind the gate? */
bool gate_link_runs_other(const char *hooks, const char *common);

#endif
