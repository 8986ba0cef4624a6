/* The programs of refd: their mark, and how refd becomes one of them. */
#ifndef CLIENT_PROGRAM_H
#define CLIENT_PROGRAM_H

#include "proto/lib/command.h"

/* The program refd contains this mark, its version and a NUL. So doctor can
 * recognise refd without running an unknown program. */
#define PROGRAM_MARK "\\@(#)refd version "

/* The path of the program NAME of refd, which need not exist. Owned. */
char *program_path(const char *name);
/* The same for refd, in another program of refd. Any thread. */
char *program_refd(void);
/* Replace this program with refd-daemon, refd-deliver or refd-group, or with
 * refd-admin, which gets the name of the command as its first argument. Do not
 * return. */
int program_daemon(const struct command *c, int argc, char **argv);
int program_deliver(const struct command *c, int argc, char **argv);
int program_group(const struct command *c, int argc, char **argv);
int program_admin(const struct command *c, int argc, char **argv);

#endif
