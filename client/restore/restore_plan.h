/*
 * The changes that restore the values of refs at a point in time, and the refs
 * that restore leaves alone. Pure; one thread.
 */
#ifndef CLIENT_RESTORE_RESTORE_PLAN_H
#define CLIENT_RESTORE_RESTORE_PLAN_H

#include "client/request/changes.h"
#include "client/restore/refs_then.h"
#include "client/git/refs_now.h"

enum restore_verdict {
	PLAN_RESTORE,
	PLAN_LEFT_GIT, /* only git changed it, at an unknown time */
	PLAN_LEFT_SYMBOLIC,
	PLAN_LEFT_WORKTREE /* per worktree, or outside refs/ */
};

struct plan_ref {
	const char *name; /* borrowed from the refs_then */
	enum restore_verdict verdict;
	/* Null: no such ref. THEN is unknown for a symbolic ref. */
	struct refd_oid now, then;
	bool git_since; /* git changed it after its last record */
	/* git changed the ref between the records around the point in time */
	bool git_around;
};

struct restore_plan {
	enum refd_object_format object_format;
	struct plan_ref *refs; /* sorted by name; unchanged refs are left out */
	size_t nr;
	size_t nr_moved, nr_made, nr_deleted; /* to be restored */
	size_t nr_unknown; /* refs that history does not have */
};

/* UNDO_GIT: also restore refs that only git changed. PATTERNS select the refs
 * that nr_unknown counts; none: all refs. */
void restore_plan_make(struct restore_plan *plan, const struct refs_then *then,
    const struct refs_now *now, bool undo_git, const char *const *patterns,
    size_t nr_patterns);
/* Adds the changes, each with the value now as the old value. The nr_deleted
 * deletions come first, because their names may block other refs. */
void restore_plan_changes(const struct restore_plan *plan,
    struct changes *changes);
void restore_plan_done(struct restore_plan *plan);

#endif
