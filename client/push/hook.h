/*
 * The proc-receive hook, as a command and as the program that git runs.
 */
#ifndef CLIENT_PUSH_HOOK_H
#define CLIENT_PUSH_HOOK_H

#include "proto/lib/command.h"

extern const struct command hook_command;
/* git runs refd by the name of the hook. Returns the exit status. */
int hook_proc_receive(void);

#endif
