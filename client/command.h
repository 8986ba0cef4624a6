/*
 * The commands of refd, one function each; main.c has the table. They get
 * their own name as argv[0] and return the exit status.
 */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

int command_update(int argc, char **argv);
int command_hook(int argc, char **argv);
int command_proc_receive(int argc, char **argv);
int command_enable(int argc, char **argv);
int command_disable(int argc, char **argv);
int command_ping(int argc, char **argv);
int command_query(int argc, char **argv);
int command_status(int argc, char **argv);
int command_stats(int argc, char **argv);
/* In this program's place: refd-daemon, and refd-admin with the command. */
int command_daemon(int argc, char **argv);
int command_admin(int argc, char **argv);

#endif
