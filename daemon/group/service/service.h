/*
 * The service: joins the daemon and the log of the group, as a leader or as a
 * follower. The main thread, beside lease_keeper.h and hold_thread.h.
 */
#ifndef CLIENT_GROUP_SERVICE_H
#define CLIENT_GROUP_SERVICE_H

#include "daemon/group/service/group_config.h"

/* Serves the daemon at the socket PATH until the daemon says STOP. */
int service_run(const struct group_config *config, const char *path);

#endif
