/*
 * The command line of refd-daemon, and the order of the sources: an option
 * wins, then REFD_SOCKET and REFD_STATE in the environment, then the file, then
 * the defaults. Before the loop runs; blocks.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include "daemon/config.h"

enum options_result {
	OPTIONS_RUN,
	OPTIONS_HELP,    /* asked for */
	OPTIONS_VERSION, /* asked for */
	OPTIONS_USAGE,   /* the command line is wrong: *WHY */
	OPTIONS_BAD      /* the file or a value is wrong: *WHY */
};

extern const char options_usage[];

/* Fills in CFG, which is initialised. The caller frees CFG with config_done()
 * after any result. *WHY as in config.h. */
enum options_result options_load(struct config *cfg, const struct sys *sys,
    int argc, char **argv, char **why);

#endif
