/*
 * The commands of refd-admin. A command gets its name as argv[0], writes text
 * or JSON to standard output and returns the exit status. One thread; all of
 * them block.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "proto/lib/command.h"
#include "proto/lib/worker.h"

int admin_recover(int argc, char **argv);
int admin_disown(int argc, char **argv);
int admin_verify(int argc, char **argv);
int admin_locks(int argc, char **argv);
int admin_check_config(int argc, char **argv);

/* Parses the command line of C: see command_parse(). Help and errors end the
 * program, and an error prints the usage. Call before threads exist. */
void admin_parse(const struct command *c, void *values, int *argc,
    char ***argv);
/* Ends the program with WHY and the usage. */
void admin_usage(const struct command *c, const char *why)
    __attribute__((noreturn));
/* Flushes standard output, and writes "refd: " and a line to standard error
 * (PRINT_AS_LINES). */
void admin_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The state directory without --state, from the environment or else by
 * default. */
const char *admin_state(void);
/*
 * Does WORK as the owner of the directory *PATH, or in this process if the
 * owner is its account. If root runs a command on the state or a repository of
 * another account, a worker does the work as this account. So the files of one
 * owner can harm neither another owner nor root. work.hear() may set *PATH to
 * another directory of this owner, which a message then names. A limit of 0
 * seconds means a week. Call before threads exist, because a worker is a fork.
 * Returns the result of the work, or FAILED after a message was printed.
 */
int admin_as_owner(const char *const *path, int failed, struct work work);
/* Would work in OTHER have the same rights as in PATH? */
bool admin_is_same_owner(const char *path, const char *other);

#endif
