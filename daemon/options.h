/*
 * The command lines of refd-daemon and of refd check-config. An option is
 * stronger than REFD_SOCKET and REFD_STATE in the environment, the environment
 * is stronger than the file, and the file is stronger than the defaults. Before
 * the loop runs; blocks.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include "daemon/config.h"
#include "proto/lib/command.h"

enum options_result {
	OPTIONS_RUN,
	OPTIONS_HELP,    /* asked for */
	OPTIONS_VERSION, /* asked for */
	OPTIONS_USAGE,   /* the command line is wrong: *WHY */
	OPTIONS_BAD      /* the file or a value is wrong: *WHY */
};

/* The output of check-config. */
enum options_form {
	OPTIONS_SENTENCE,
	OPTIONS_ORIGINS, /* each value and its origin */
	OPTIONS_JSON
};

/* check-config has further options for the form of its output, and the argument
 * <file>. */
extern const struct command options_daemon, options_check_config;

/* To standard output. */
void options_print_help(const struct command *c);
/* To standard error. */
void options_print_usage(const struct command *c);

/* Fills in CFG and, unless NULL, *FORM. The caller calls config_done()
 * whatever the result. *WHY as in config.h. */
enum options_result options_load(const struct command *c, struct config *cfg,
    const struct sys *sys, int argc, char **argv, enum options_form *form,
    char **why);

#endif
