/*
 * A node of a group as the replica of a store (daemon/store/replica.h): the
 * link to refd-group (group.h), and the follower (follower.h).
 */
#ifndef GROUP_REPLICA_H
#define GROUP_REPLICA_H

#include <stdint.h>

#include "daemon/store/replica.h"

/* NODE is the name of this node, and is copied. PATIENCE_NS: a batch that has
 * no outcome for so long ends the daemon. NULL: out of memory. Goes to
 * store_config.replica. */
struct replica *group_replica_new(const char *node, int64_t patience_ns);
/* R owns FD, which listens for refd-group. Before store_start(). */
void group_replica_listen(struct replica *r, int fd);

#endif
