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
/* SELF is this program; MINE is the target of refd's earlier link, or NULL. */
enum proc_receive proc_receive_look(const char *hooks, const char *self,
    const char *mine);
/* Whether it is a link to TARGET. */
bool proc_receive_links_to(const char *hooks, const char *target);
/* Makes this link, durable, in place of the present hook. */
bool proc_receive_link(const char *hooks, const char *target);
/* A different hook stays. */
bool proc_receive_unlink(const char *hooks, const char *target);

/* Makes a directory of hooks, unless it is there. */
bool hooks_make_directory(const char *dir);

/* ---- the shared directory ---- */

/* Its path, owned; NULL: there is none yet. */
char *hooks_place(void);
/* Makes it at DIR, or mends it; SELF is this program. */
bool hooks_acquire(const char *dir, const char *self);
/* Removes the shared directory and its parents that refd made, unless DIR has
 * other users than USER: a repository's path, or "system". */
bool hooks_release(const char *dir, const char *user);

#endif
