/*
 * Puts the repository of a row in its place: the path of the row. Rows come in
 * the order of the log, so the path is the path on the leader at that moment.
 *
 * The happy path: the repository is there.
 *
 * On the leader, programs rename, remove and replace repositories without refd.
 * Then the path of the row is free on this node, or has another repository. The
 * other repository is moved aside, to .refd-<uuid> beside its path, and never
 * removed, because a later row can put it at its new path. The repository of
 * the row comes from beside the path, where refd-group makes new repositories;
 * from its path in the journal; from beside that path; or, after a search, from
 * anywhere below the roots. A crash between two moves leaves both repositories
 * where the next attempt looks.
 *
 * A row that has waited (waiting.c) comes late. If a later row has another
 * repository in its place, or above or below it, that repository must stay. So
 * the row is applied where its own repository is.
 *
 * refd-group makes a repository also if this node had the repository and has
 * lost it. Such a new repository is not taken, because it has none of the refs.
 * The row waits until the lost repository, or a copy, is back.
 *
 * After chmod -R g+w, others may write the id of a repository that moves. The
 * id is replaced before the move, because nothing would confirm it afterwards.
 * If a repository in the place cannot be opened for the new id, it counts as
 * anything else, because its uuid can be forged.
 *
 * Anything else in the place is moved to .refd-way-<LSN> beside it, and never
 * removed. A repository that is above its new place is moved aside first,
 * because no directory can move below itself.
 *
 * Failures: a file or a link in place of a directory on the way; a mount point
 * in the place; the disk.
 *
 * For the thread that applies rows. Blocks on the disk. No path is followed
 * through a link, except to a repository that is in its place already.
 */
#ifndef GROUP_ROW_PLACE_H
#define GROUP_ROW_PLACE_H

#include "daemon/store/repos/repo.h"
#include "daemon/store/store.h"
#include "proto/group_frame.h"

struct row_place {
	struct repos *repos; /* borrowed */
	/* The repository WHY is now at PLACE. May be NULL. */
	void (
	    *event)(enum store_event event, const char *place, const char *why);
	uint64_t lsn;  /* of the row */
	bool searches; /* row_search.h */
	/* Nothing is moved: rows before this one are not applied yet. */
	bool only_looks;
	bool has_left; /* the place has another repository in a later row */
};

/* Sets PATH to the path where the repository of ROW is, or should be. 0;
 * -ENOENT: this node does not have the repository, or only a search would find
 * the repository; -EAGAIN: the repository must be moved, but PLACE only looks;
 * another negative errno. WHY is the reason of a failure. */
int row_place_put(const struct row_place *place, const struct group_row *row,
    char path[REFD_PATH_MAX], char *why, size_t why_size);

#endif
