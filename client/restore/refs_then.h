/*
 * The values of a repository's refs at a point in time, from its history.
 * Pure; one thread.
 *
 * History has only changes through the daemon. A gap between the new value of
 * a change and the old value of the next change, or the value now, is a change
 * by git at an unknown time. So a ref had the old value of its first change
 * after the point. For a ref without such a change, only the value after its
 * last change is known.
 */
#ifndef CLIENT_RESTORE_REFS_THEN_H
#define CLIENT_RESTORE_REFS_THEN_H

#include "proto/message.h"

/* Null oids: no such ref. */
struct ref_then {
	char *name;
	bool has_before, has_since; /* a change up to the point, or later */
	struct refd_oid before;     /* new value of the last change up to it */
	struct refd_oid at;         /* old value of the first change after it */
	struct refd_oid last;       /* new value of the last change */
	/* Was or became symbolic; its earlier target is not known. */
	bool is_symbolic;
};

/* Empty when zero-initialised, except for the point. Owns its refs. */
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

#endif
