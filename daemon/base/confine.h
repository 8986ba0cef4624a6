/*
 * Restricts the daemon once all needed files are open: no program, no process,
 * no foreign file, no network, even for an attacker running code in the daemon.
 * The daemon gives rights up in this order:
 *
 *	no new privileges	PR_SET_NO_NEW_PRIVS
 *	not dumpable		no other process of its account may trace it or
 *				read its memory. Left out if core dumps are
 *				allowed (RLIMIT_CORE is not 0), because only a
 *				dumpable process leaves one
 *	Landlock		files below the roots and the state directory
 *	seccomp			the system calls of sys_seccomp.c
 *
 * If the kernel lacks one of these parts, it is no error: the daemon serves
 * without the part, and log and status name it. No step can be undone, so a new
 * root in the configuration waits for a restart.
 */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <stddef.h>

/* All borrowed, absolute, and existing. */
struct confine_places {
	const char *const *roots; /* with links resolved */
	size_t nr_roots;
	const char *state_dir;
	const char *sockets[2]; /* made by the daemon; NULL: none */
	const char *config;     /* read again by a reload; NULL: none */
};

struct confined {
	char by[128];      /* parts in force, for people; "" nothing */
	char without[512]; /* "PART (why)" of missing parts; "" nothing */
};

/* Only the calling thread and its later threads are confined, so call it on the
 * main thread before a second thread exists, and before a repository is opened.
 * The daemon could not work if one of PLACES were not allowed. Then the call
 * fails with a negative errno, and *WHY, to be freed (NULL: out of memory). */
int confine_process(const struct confine_places *places,
    struct confined *confined, char **why);

#endif
