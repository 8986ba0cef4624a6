/*
 * The administrator's commands, and the screen. Each gets its own name as
 * argv[0] and returns the exit status.
 */
#ifndef CLIENT_ADMIN_ADMIN_H
#define CLIENT_ADMIN_ADMIN_H

int command_top(int argc, char **argv);
int command_slowlog(int argc, char **argv);
int command_locks(int argc, char **argv);
int command_pause(int argc, char **argv);
int command_resume(int argc, char **argv);
int command_drain(int argc, char **argv);

#endif
