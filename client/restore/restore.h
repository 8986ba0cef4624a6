/*
 * refd restore: give the refs of a repository their values at a point in time,
 * in one transaction. argv[0] is the command's name; returns the exit status.
 */
#ifndef CLIENT_RESTORE_RESTORE_H
#define CLIENT_RESTORE_RESTORE_H

int command_restore(int argc, char **argv);

#endif
