/*
 * Names of objects into ids. Forty hex digits are taken as they are, without
 * asking whether there is such an object; anything else is git's to resolve
 * ("git cat-file --batch-check", started once, when first needed).
 * Blocking; one thread.
 */
#ifndef CLIENT_GIT_REVISION_H
#define CLIENT_GIT_REVISION_H

#include "client/base/child.h"
#include "client/git/gitdir.h"
#include "proto/oid.h"

/* GD is borrowed; the rest is zero at first. */
struct revisions {
	const struct gitdir *gd;
	struct coprocess git;
};

/* False: no such object, or ambiguous. */
bool revision_resolve(struct revisions *revs, const char *name,
    struct refd_oid *oid);
void revisions_done(struct revisions *revs);

#endif
