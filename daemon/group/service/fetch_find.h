/*
 * Searches a root for a repository by its uuid. The leader may have renamed the
 * repository, and this node still has the repository at the former path as long
 * as the next row has not come. The search reads every directory below the
 * root, except those below a repository. This takes some seconds for 100,000
 * repositories, or minutes from a slow disk. No link is followed. An id that
 * others may write does not count, because nothing confirms its uuid.
 *
 * Any thread; blocks.
 */
#ifndef GROUP_SERVICE_FETCH_FIND_H
#define GROUP_SERVICE_FETCH_FIND_H

#include "daemon/group/service/fetch.h"

/* Opens the directory of the repository with the uuid of WISH. -ENOENT: there
 * is none. -EKEYREJECTED: only an id that others may write has the uuid.
 * Another negative errno: a part of ROOT could not be searched, and the rest
 * does not have the repository. */
int fetch_find(const char *root, const struct fetch_wish *wish);

#endif
