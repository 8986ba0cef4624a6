/*
 * Resolves names of objects. The hex digits of a whole id are used verbatim,
 * without a check that the object exists. git resolves all other names ("git
 * cat-file --batch-check", started at the first need). Blocking; one thread.
 */
#ifndef CLIENT_GIT_REVISION_H
#define CLIENT_GIT_REVISION_H

#include "client/base/child.h"
#include "client/git/gitdir.h"
#include "proto/oid.h"

/* GD is borrowed. OBJECT_FORMAT is of the repository. The rest is zero
 * initially. */
struct revisions {
	const struct gitdir *gd;
	enum refd_object_format object_format;
	struct coprocess git;
};

/* False: no such object, or an ambiguous name. */
bool revision_resolve(struct revisions *revs, const char *name,
    struct refd_oid *oid);
void revisions_done(struct revisions *revs);

#endif
