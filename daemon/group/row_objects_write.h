/*
 * Writes the objects of a row (daemon/store/objects/row_objects.h) as loose
 * objects, before the row is admitted, because admission looks for the objects.
 *
 * One thread; blocks on the files.
 */
#ifndef GROUP_ROW_OBJECTS_WRITE_H
#define GROUP_ROW_OBJECTS_WRITE_H

#include "daemon/store/journal/record.h"
#include "daemon/store/repos/repo.h"
#include "proto/group_frame.h"

/*
 * Writes the objects of ROW, with the record REC, into the repository PATH.
 * Before the call, *REPO is the repository of the call before, or NULL.
 * Afterwards it is the repository of this call, which the caller puts.
 *
 * If an object that is there were replaced, its directory would count as new,
 * and each batch would wait for a sync. So such an object stays. It is written
 * again only if the barrier could miss that it is in memory only. The barrier
 * of admission syncs the new objects, so nothing is synced here.
 *
 * 0; 1: the repository can't be opened, or is a different one, so admission
 * will refuse it; or negative errno: some objects may be there.
 */
int row_objects_write(struct repos *repos, struct repo **repo, const char *path,
    const struct group_row *row, const struct record *rec);

#endif
