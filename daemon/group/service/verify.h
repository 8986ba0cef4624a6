/*
 * refd group verify: compares repositories of this node with those of the other
 * nodes, on the disks, while refd works. The happy path for a repository:
 *
 *	1. The objects of this node are whole (whole.h), or are repaired.
 *	2. For each other node: both nodes have applied the log up to its last
 *	   LSN. Then git lists the refs of both (listing.h).
 *	3. A ref differs if the listings do, and no row behind the LSN has its
 *	   name. Otherwise the row can explain the difference, and both nodes
 *	   are listed again.
 *
 * If both nodes have the same refs, and git finds all objects of the refs on
 * each node, their objects are the same. So each node reads its own objects
 * only.
 *
 * Failures: whatever could not be compared counts as a finding. One thread;
 * blocks.
 */
#ifndef CLIENT_GROUP_VERIFY_H
#define CLIENT_GROUP_VERIFY_H

#include "daemon/group/service/group_config.h"

/* REPOS: paths of repositories of this node, and NULL; none: all below the
 * root. Returns the exit status. */
int verify_run(const struct group_config *config, char *const *repos,
    bool repairs);

#endif
