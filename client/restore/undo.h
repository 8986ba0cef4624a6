/*
 * What has to be done so that refs are again what they were at a moment, and
 * what is left alone. Pure; one thread.
 */
#ifndef CLIENT_RESTORE_UNDO_H
#define CLIENT_RESTORE_UNDO_H

#include "client/request/changes.h"
#include "client/restore/former.h"
#include "client/restore/present.h"

enum undo_verdict {
	UNDO_RESTORE,
	UNDO_LEFT_GIT, /* git alone changed it, nobody knows when */
	UNDO_LEFT_SYMBOLIC,
	UNDO_LEFT_WORKTREE /* its own, and HEAD's kind */
};

struct undo_ref {
	const char *name; /* of history's */
	enum undo_verdict verdict;
	/* Null: no such ref. THEN is not known of what is symbolic. */
	struct refd_oid now, then;
	bool git_since;  /* changed it after its last record, too */
	bool git_around; /* changed it before its first record since */
};

struct undo {
	struct undo_ref *refs; /* by their names; not those as they were */
	size_t nr;
	size_t nr_moved, nr_made, nr_deleted; /* to be restored */
	size_t nr_unknown; /* present, and none of history's */
};

/* UNDO_GIT: what is UNDO_LEFT_GIT is restored. PATTERNS say which of the
 * present refs are meant; none: all. */
void undo_make(struct undo *undo, const struct former *former,
    const struct present *now, bool undo_git, const char *const *patterns,
    size_t nr_patterns);
/* Adds what is to be done, each from what is there now: first nr_deleted
 * deletions, whose names may be in the others' way. */
void undo_changes(const struct undo *undo, struct changes *changes);
void undo_done(struct undo *undo);

#endif
