/*
 * refd log and refd watch: history, and what becomes of it next, for people
 * and programs. Each gets its own name as argv[0] and returns the exit status.
 */
#ifndef CLIENT_LOG_LOG_H
#define CLIENT_LOG_LOG_H

int command_log(int argc, char **argv);
int command_watch(int argc, char **argv);

#endif
