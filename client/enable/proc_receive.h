/*
 * The link to refd in a directory of hooks, and such a directory of refd's own,
 * which core.hooksPath names: for all repositories below a directory, or where
 * another hook is proc-receive. It has a forwarder for every other hook.
 *
 * Blocking; one thread. Actions are printed on standard output, and failures
 * are said on standard error and returned as false.
 */
#ifndef CLIENT_ENABLE_PROC_RECEIVE_H
#define CLIENT_ENABLE_PROC_RECEIVE_H

#include <stdbool.h>

/* Is PATH the program that runs? */
bool is_this_program(const char *path);
/* The path of proc-receive in HOOKS, owned. */
char *proc_receive_path(const char *hooks);
enum proc_receive {
	HOOK_REFD,    /* refd is there */
	HOOK_MISSING, /* refd may be put there */
	HOOK_OTHER
};
/* What is there; SELF is this program, and MINE what refd linked (or NULL). */
enum proc_receive proc_receive_look(const char *hooks, const char *self,
    const char *mine);
/* Whether it is a link to TARGET. */
bool proc_receive_links_to(const char *hooks, const char *target);
/* Makes it one, durable; a hook that is there is replaced. */
bool proc_receive_link(const char *hooks, const char *target);
/* Another hook stays. */
bool proc_receive_unlink(const char *hooks, const char *target);

/* ---- the shared directory ---- */

/* Its path, owned; NULL: there is none yet. */
char *hooks_place(void);
/* Makes it at DIR, or mends it; SELF is this program. */
bool hooks_acquire(const char *dir, const char *self);
/* Removes what acquire made, unless another than USER (a repository's path, or
 * "system") uses DIR. */
bool hooks_release(const char *dir, const char *user);

#endif
