/*
 * The proc-receive hook.
 */
#ifndef CLIENT_PUSH_HOOK_H
#define CLIENT_PUSH_HOOK_H

/* Git runs refd by the name of the hook. Returns the exit status. */
int hook_proc_receive(void);

#endif
