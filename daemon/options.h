/*
 * The command lines of refd-daemon and of refd check-config. An option is
 * stronger than REFD_SOCKET and REFD_STATE in the environment, then come the
 * file and the defaults. Before the loop runs; blocks.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdio.h>

#include "daemon/config.h"
#include "proto/lib/command.h"

enum options_result {
	OPTIONS_RUN,
	OPTIONS_HELP,    /* asked for */
	OPTIONS_VERSION, /* asked for */
	OPTIONS_USAGE,   /* the command line is wrong: *WHY */
	OPTIONS_BAD      /* the file or a value is wrong: *WHY */
};

/* check-config has the option --show-origin and the argument <file>, too. */
extern const struct command options_daemon, options_check_config;

void options_print_help(const struct command *c, FILE *to);

/* Fills in CFG and, unless NULL, *SHOWS_ORIGIN. The caller calls config_done()
 * whatever the result. *WHY as in config.h. */
enum options_result options_load(const struct command *c, struct config *cfg,
    const struct sys *sys, int argc, char **argv, bool *shows_origin,
    char **why);

#endif
