/*
 * A hook that is a link to refd, in a directory of hooks.
 *
 * Git knows only one proc-receive hook, so refd makes none beside a user's
 * proc-receive hook. A user's reference-transaction hook gets a second name
 * instead, because the gate, which is refd's link, can run the user's hook
 * (client/hooks/gate_link.h).
 *
 * Blocking; one thread. Actions are printed on standard output, failures on
 * standard error and returned as false.
 */
#ifndef CLIENT_ENABLE_HOOK_LINK_H
#define CLIENT_ENABLE_HOOK_LINK_H

#include <stdbool.h>

enum hook_name { HOOK_PROC_RECEIVE, HOOK_GATE };

/* Is proc-receive in the directory HOOKS this program? */
bool hook_link_is_refd(const char *hooks);
/* Would git run proc-receive in HOOKS, and is the hook not this program? */
bool hook_link_is_other(const char *hooks);
/* Whether the hook is a link to TARGET. */
bool hook_link_leads_to(const char *hooks, enum hook_name hook,
    const char *target);

/* Is proc-receive missing, or refd's? SELF is this program; MINE is the target
 * of refd's earlier link, or NULL. */
bool hook_link_is_free(const char *hooks, const char *self, const char *mine);
/* May the hook be put into HOOKS? Not if HOOKS is a link of another user
 * (owned_trusts_link()), or a second name is taken; an error was printed. */
bool hook_link_may_be_in(const char *hooks, enum hook_name hook);

/* Makes the link, durable, in place of the present hook, and HOOKS, if it is
 * missing. At every moment git finds a whole hook. */
bool hook_link_make(const char *hooks, enum hook_name hook, const char *target);
/* The same back. A different hook stays, and so does a hook behind a link of
 * another user. */
bool hook_link_remove(const char *hooks, enum hook_name hook,
    const char *target);

#endif
