/*
 * The commands of refd that have no room of their own; main.c has the table of
 * all. Each gets its own name as argv[0] and returns the exit status.
 */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

int command_ping(int argc, char **argv);
int command_query(int argc, char **argv);
int command_status(int argc, char **argv);
int command_stats(int argc, char **argv);
int command_checkpoint(int argc, char **argv);
/* In this program's place: refd-daemon, and refd-admin with the command. */
int command_daemon(int argc, char **argv);
int command_admin(int argc, char **argv);

#endif
