/*
 * Searches a root for a repository by its uuid: on the leader, the repository
 * was renamed, and here it is still at its former path, because its next row
 * has not come yet. The search reads every directory below the root, except
 * those below a repository: some seconds for 100,000 repositories, or minutes
 * from a slow disk. No link is followed. An id that others may write does not
 * count, because nothing confirms its uuid.
 *
 * Any thread; blocks.
 */
#ifndef GROUP_SERVICE_FETCH_FIND_H
#define GROUP_SERVICE_FETCH_FIND_H

#include "daemon/group/service/fetch.h"

/* Opens the directory of the repository with the uuid of WISH. -ENOENT: none.
 * -EKEYREJECTED: only in such an id. Another negative errno: a part of ROOT
 * could not be searched, and the others do not have it. */
int fetch_find(const char *root, const struct fetch_wish *wish);

#endif
