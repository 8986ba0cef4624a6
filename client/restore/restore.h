/*
 * refd restore: a repository's refs as they were at a moment, in one
 * transaction. Gets its own name as argv[0] and returns the exit status.
 */
#ifndef CLIENT_RESTORE_RESTORE_H
#define CLIENT_RESTORE_RESTORE_H

int command_restore(int argc, char **argv);

#endif
