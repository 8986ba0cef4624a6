/* Deletion of rows of the log that no node needs. One thread; blocks. */
#ifndef CLIENT_GROUP_OLD_ROWS_H
#define CLIENT_GROUP_OLD_ROWS_H

#include "daemon/group/service/session.h"

/*
 * If this node leads, deletes some of the first rows of the log: those that
 * every node in refd.node has applied, and that are older than a day by the
 * clock of the leader that wrote them. The newest row stays. The remaining rows
 * have no gap. True: there may be more such rows.
 */
bool old_rows_delete(struct session *s);

#endif
