/*
 * The proc-receive hook as a command, and as the program that git runs.
 */
#ifndef CLIENT_PUSH_HOOK_H
#define CLIENT_PUSH_HOOK_H

int command_hook(int argc, char **argv);
int command_proc_receive(int argc, char **argv);

#endif
