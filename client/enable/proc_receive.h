/*
 * The hook proc-receive, a link to refd in a directory of hooks.
 *
 * Blocking; one thread. Actions are printed on standard output, failures on
 * standard error and returned as false.
 */
#ifndef CLIENT_ENABLE_PROC_RECEIVE_H
#define CLIENT_ENABLE_PROC_RECEIVE_H

#include <stdbool.h>

/* Is PATH the program that runs? */
bool proc_receive_is_this_program(const char *path);
/* The path of proc-receive in HOOKS, owned. */
char *proc_receive_path(const char *hooks);
enum proc_receive {
	HOOK_REFD,    /* refd is there */
	HOOK_MISSING, /* refd may be put there */
	HOOK_OTHER
};
/* SELF is this program; MINE is the target of refd's earlier link, or NULL. */
enum proc_receive proc_receive_look(const char *hooks, const char *self,
    const char *mine);
/* Whether it is a link to TARGET. */
bool proc_receive_links_to(const char *hooks, const char *target);
/* False: HOOKS is a link of another user (owner_trusts_link()); an error was
 * printed. */
bool proc_receive_may_be_in(const char *hooks);
/* Opens a directory of hooks. A member of the group can exchange the directory
 * at any time. So all changes are made beneath the descriptor. Negative errno:
 * not opened. */
int proc_receive_open_hooks(const char *hooks);
/* Makes this link, durable, in place of the present hook. */
bool proc_receive_link(const char *hooks, const char *target);
/* The same back. A different hook stays, and so does a hook behind a link of
 * another user. */
bool proc_receive_unlink(const char *hooks, const char *target);

/* Makes a directory of hooks, unless it is there. */
bool proc_receive_make_directory(const char *dir);

#endif
