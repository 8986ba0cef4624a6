/*
 * refd's own directory of hooks. core.hooksPath names the directory, for all
 * repositories below a root or beside another proc-receive hook. The directory
 * has a forwarder for every other hook.
 *
 * Blocking; one thread. Actions are printed on standard output, failures on
 * standard error and returned as false.
 */
#ifndef CLIENT_ENABLE_SHARED_HOOKS_H
#define CLIENT_ENABLE_SHARED_HOOKS_H

#include <stdbool.h>

/* Its path, owned; NULL: there is none yet. */
char *shared_hooks_place(void);
/* Makes it at DIR, or mends it; SELF is this program. */
bool shared_hooks_acquire(const char *dir, const char *self);
/* Removes the shared directory and its parents that refd made, unless it has
 * other users than USER: a repository's path, or "system". */
bool shared_hooks_release(const char *user);

#endif
