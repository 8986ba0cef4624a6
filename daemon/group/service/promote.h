/*
 * refd group promote: a planned move of the lead. Prints to standard output,
 * and returns the exit status. Blocking; one thread.
 */
#ifndef CLIENT_GROUP_PROMOTE_H
#define CLIENT_GROUP_PROMOTE_H

#include "daemon/group/service/group_config.h"

/* Moves the lead to NODE, and waits until NODE leads. */
int promote_run(const struct group_config *config, const char *node);

#endif
