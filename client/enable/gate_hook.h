/*
 * The gate in a repository's directory of hooks: the hook reference-transaction
 * is a link to refd, and the hook that was there has a second name
 * (client/hooks/gate_link.h).
 *
 * Blocking; one thread. Actions are printed on standard output, failures on
 * standard error and returned as false.
 */
#ifndef CLIENT_ENABLE_GATE_HOOK_H
#define CLIENT_ENABLE_GATE_HOOK_H

#include <stdbool.h>

/* Is the gate in HOOKS a link to TARGET? */
bool gate_hook_links_to(const char *hooks, const char *target);
/* May the gate be put into HOOKS? Not if it would need the name of a file that
 * is there; an error was printed. */
bool gate_hook_may_be_in(const char *hooks);
/* Makes the link, durable. At every moment git finds the user's hook, or the
 * gate that runs the user's hook. */
bool gate_hook_make(const char *hooks, const char *target);
/* The user's hook, if there is one, gets its name back. A hook that is not the
 * gate stays. */
bool gate_hook_remove(const char *hooks);

#endif
