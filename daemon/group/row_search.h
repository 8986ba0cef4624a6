/*
 * Searches the roots for a repository by its uuid, because the journal of the
 * node does not know its path. The repository was copied from another node, or
 * its new path was lost in a power failure.
 *
 * The search reads every directory below the roots, except those below a
 * repository: some seconds for 100,000 repositories, or minutes from a slow
 * disk. So the caller limits the searches. No link is followed. Any thread;
 * blocks.
 *
 * An old copy that refd group join has moved to .refd-way-<uuid>-<seconds> is
 * not found, because its refs are old. But .refd-way-<LSN> is searched, because
 * a row moves any directory there that is in its way (row_place.h). Such a
 * directory may have repositories of the group, and their next rows must find
 * the repositories.
 */
#ifndef GROUP_ROW_SEARCH_H
#define GROUP_ROW_SEARCH_H

#include "daemon/store/repos/repo.h"
#include "daemon/store/repos/repo_id.h"

/* Reads refd/id of the directory FD. -ENODATA: it is not a repository of this
 * daemon. An id that others may write is read, too. Only repo_claim() decides
 * whether it counts. */
int row_search_id(const struct sys *sys, int fd, struct repo_id *id);

/* True: PATH is the repository. */
bool row_search_find(const struct repos *repos, const uint8_t uuid[16],
    char path[REFD_PATH_MAX]);

#endif
