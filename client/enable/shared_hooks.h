/*
 * The directory of hooks that several repositories share. core.hooksPath names
 * the directory, for all repositories below a root or beside another
 * proc-receive hook. The directory comes with the installation, so no command
 * makes, mends or removes a part of it.
 *
 * Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_SHARED_HOOKS_H
#define CLIENT_ENABLE_SHARED_HOOKS_H

#include <stdbool.h>

/* The directory of the program SELF, an absolute path; owned. */
char *shared_hooks_place(const char *self);
/* Is DIR installed with this program? An error was printed if not. */
bool shared_hooks_are_there(const char *dir);

#endif
