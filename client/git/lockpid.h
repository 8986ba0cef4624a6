/*
 * The process that took a lock of git, as named by git itself
 * (proto/lib/lock_pid.h). Blocking; one thread.
 */
#ifndef CLIENT_GIT_LOCKPID_H
#define CLIENT_GIT_LOCKPID_H

#include <stdbool.h>

/*
 * The process named beside LOCK, "<file>.lock"; *RUNS: a process with this
 * number runs, and has the owner of the file. 0: git named none, or a process
 * of another user has the number.
 */
long lockpid_read(const char *lock, bool *runs);

#endif
