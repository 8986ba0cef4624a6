/*
 * All refs of a repository, read by git. Blocking; one thread.
 */
#ifndef CLIENT_GIT_REFS_NOW_H
#define CLIENT_GIT_REFS_NOW_H

#include "client/git/gitdir.h"
#include "proto/lib/cli.h"
#include "proto/oid.h"

struct ref_now {
	const char *name;
	struct refd_oid oid;
	bool is_symbolic;
};

/* Empty when zero-initialised, but the owner sets OBJECT_FORMAT. */
struct refs_now {
	enum refd_object_format object_format;
	struct ref_now *refs; /* sorted by name */
	size_t nr, size;
	struct text list;
};

/* Runs git, and a failure ends the program. */
void refs_now_load(struct refs_now *now, const struct gitdir *gd);
/* Takes LIST, a line "<oid> <name> <target or nothing>" for each ref. False: a
 * line has another form. */
bool refs_now_parse(struct refs_now *now, struct text *list);
const struct ref_now *refs_now_find(const struct refs_now *now,
    const char *name);
void refs_now_done(struct refs_now *now);

#endif
