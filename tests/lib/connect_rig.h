/*
 * A repository "repo" in tmp_root, from the client's view, and the path of a
 * socket without a listener. One thread.
 */
#ifndef TESTS_LIB_CONNECT_RIG_H
#define TESTS_LIB_CONNECT_RIG_H

#include "client/git/gitdir.h"

extern struct gitdir connect_gd;
extern char connect_sock[600]; /* "sock" in tmp_root */

/* No variable of the environment names a socket. */
void connect_setup(void);
void connect_teardown(void);
/* The marker of a recovery is a link to TARGET. The test may run on any file
 * system, and /proc is no tmpfs. */
void connect_mark_by(const char *target);

#endif
