/*
 * refd group leave: a node that is stopped for ever. Prints to standard output,
 * and returns the exit status. Blocking; one thread.
 */
#ifndef CLIENT_GROUP_LEAVE_H
#define CLIENT_GROUP_LEAVE_H

#include "daemon/group/service/group_config.h"

/* Removes NODE from the nodes of the group, so that no row is kept for NODE,
 * and no update waits for its objects. */
int leave_run(const struct group_config *config, const char *node);

#endif
