/*
 * The commands of refd-group. Each prints to standard output, and returns the
 * exit status. Blocking; the main thread.
 */
#ifndef GROUP_SERVICE_VERBS_H
#define GROUP_SERVICE_VERBS_H

#include "daemon/group/service/group_config.h"

/* Of the command line. */
struct verb_options {
	const char *config, *socket;
	bool repairs;          /* verify */
	char *const *operands; /* and NULL */
	const char *operand;   /* the first one, or NULL; a node: this one */
};

typedef int verb_fn(const struct group_config *config,
    const struct verb_options *opt);

/* Creates tables, group and first lease. Operand: schema_create(). */
verb_fn console_create;
/* Prints the state of the group. EXIT_FAILED: batches would be refused or would
 * wait. */
verb_fn console_status;
/* The socket is in the state directory of the daemon. */
verb_fn join_run;
/* Moves the lead to the node, and waits until it leads. */
verb_fn promote_run;
/* Removes a node that is stopped for ever. Otherwise the group would keep rows
 * for the node, and updates would wait for objects on the node. */
verb_fn leave_run;
/* Operands: paths of repositories of this node; none: all below the root. */
verb_fn verify_run;
/* Serves the daemon at the socket until the daemon says STOP. */
verb_fn service_run;

#endif
