/*
 * refd group join: makes this machine a node of the group, while the other
 * nodes go on. Neither the daemon nor refd-group runs here meanwhile. The happy
 * path:
 *
 *	check	configuration, role, standbys, clock, versions, the leader
 *	list	the leader names its repositories (lister.h)
 *	pin	this node is in the group as a node that has applied the row L,
 *		which the refs of the leader have. From now on the group keeps
 *		the rows behind L
 *	list	again, and after the copies, until all are copied
 *	copy	git fetches objects and refs of each repository from the leader
 *		into a repository aside, which is then complete, with hooks, and
 *		gets into its place. What was there is moved aside
 *	journal	begins behind L, and has the values that git has copied. So a
 *		copy that is damaged later does not count as the truth
 *
 * The copies are of different moments behind L. The node then applies all rows
 * behind L, also those that a copy has, and of each ref the last row wins. So
 * the refs are right as soon as the node has the whole log, and before that it
 * neither leads nor serves as /follower. A copied value may be of any row up to
 * the end of the log after the last copy, and the journal keeps this LSN with
 * the value: then a row that finds it knows that it is not a foreign one.
 *
 * Reflogs, configuration, hooks, descriptions, a detached HEAD, and a HEAD that
 * leads nowhere are not copied.
 *
 * Failures: nobody else is touched, and the command is repeated. It copies all
 * again, with a new L, because an old copy can have a configuration, symbolic
 * refs or damage that git would follow. A node that gives up must leave,
 * because rows are kept for it.
 */
#ifndef CLIENT_GROUP_JOIN_H
#define CLIENT_GROUP_JOIN_H

#include "daemon/group/service/group_config.h"

/* SOCKET is in the state directory of the daemon. Prints to standard output,
 * and returns the exit status. */
int join_run(const struct group_config *config, const char *socket);

#endif
