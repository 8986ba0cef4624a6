/*
 * The commands of refd-admin. argv[0] is the name of the command. Each writes
 * text or JSON to standard output and returns the exit status. One thread; all
 * of them block.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "proto/lib/command.h"

int admin_recover(int argc, char **argv);
int admin_disown(int argc, char **argv);
int admin_verify(int argc, char **argv);
int admin_locks(int argc, char **argv);
int admin_check_config(int argc, char **argv);

/* Parses the command line of C: see command_parse(). False: help or an error
 * was printed, and *STATUS is the exit status. */
bool admin_parse(const struct command *c, void *values, int *argc, char ***argv,
    int *status);
/* Writes "refd: " and a line to standard error (PRINT_AS_LINES), after the
 * standard output. */
void admin_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The state directory without --state: of the environment, or the default. */
const char *admin_state(void);

#endif
