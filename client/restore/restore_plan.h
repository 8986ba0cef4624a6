/*
 * The changes that restore the values of refs at a point in time, and the refs
 * that restore leaves alone. Pure; one thread.
 */
#ifndef CLIENT_RESTORE_RESTORE_PLAN_H
#define CLIENT_RESTORE_RESTORE_PLAN_H

#include "client/git/refs_now.h"
#include "client/request/changes.h"

/*
 * The values of a repository's refs at a point in time, from its history.
 *
 * History has only changes through the daemon. A gap between the new value of
 * a change and the old value of the next change, or the value now, is a change
 * by git at an unknown time. So a ref had the old value of its first change
 * after the point. For a ref without such a change, only the value after its
 * last change is known.
 */

/* Null oids: no such ref. */
struct ref_then {
	char *name;
	bool has_before, has_since; /* a change up to the point, or later */
	struct refd_oid before;     /* new value of the last change up to it */
	struct refd_oid at;         /* old value of the first change after it */
	struct refd_oid last;       /* new value of the last change */
	/* The ref was or became symbolic, and its earlier target is not
	 * known. */
	bool is_symbolic;
};

/* Empty when zero-initialised, except for the point, and owns its refs. */
struct refs_then {
	struct refd_position point; /* the last change up to the point */
	struct ref_then **refs;     /* in the order of their first change */
	size_t nr, size;
	void *tree;
};

/* Call once for each change of the repository, in order. Rejected and reverted
 * changes are ignored. */
void refs_then_add(struct refs_then *p, const struct refd_change *c);
const struct ref_then *refs_then_find(const struct refs_then *p,
    const char *name);
void refs_then_done(struct refs_then *p);

/* ---- the plan ---- */

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

/* With UNDO_GIT, refs that only git changed are restored, too. PATTERNS select
 * the refs that nr_unknown counts, and without a pattern all refs count. */
void restore_plan_make(struct restore_plan *plan, const struct refs_then *then,
    const struct refs_now *now, bool undo_git, const char *const *patterns,
    size_t nr_patterns);
/* Adds the changes, each with the value now as the old value. The nr_deleted
 * deletions come first, because their names may block other refs. */
void restore_plan_changes(const struct restore_plan *plan,
    struct changes *changes);
void restore_plan_done(struct restore_plan *plan);

#endif
