/*
 * The tables of a group in PostgreSQL, in the schema refd:
 *
 *	version	one row: the version of the tables
 *	grp	the groups: name, uuid
 *	lease	the leader of a group and its epoch
 *	log	the rows; a first row is there from the start
 *	node	what each node has applied
 *	want	objects which a leader asks the other nodes to hold
 *	held	a node holds these objects, or why not
 *
 * The last two are messages, so they are unlogged, and a crash of PostgreSQL
 * empties them.
 *
 * One thread; every call blocks.
 */
#ifndef GROUP_SERVICE_SCHEMA_H
#define GROUP_SERVICE_SCHEMA_H

#include "daemon/group/service/session.h"
#include "proto/group_frame.h"

#define SCHEMA_VERSION 1

/*
 * Creates the tables, or brings older tables to SCHEMA_VERSION, and adds the
 * group with row 0 and a first lease, which has ended. One transaction. WRONG:
 * the group exists, or the tables have a newer version.
 *
 * ORIGIN: the uuid of a node that has left its group (proto/left_log.h), or
 * NULL. The new group gets this uuid, and goes on behind the last row of the
 * node: the first row has the LSN of this last row, in place of 0. No row has
 * the refs from before, so other nodes need a copy of the node.
 */
enum session_result schema_create(struct session *s,
    const uint8_t origin[GROUP_UUID_BYTES]);

/* Checks the version of the tables, and reads the uuid of the group. */
enum session_result schema_check(struct session *s,
    uint8_t group[GROUP_UUID_BYTES]);

#endif
