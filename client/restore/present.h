/*
 * All refs of a repository as git reads them just now. Blocking; one thread.
 */
#ifndef CLIENT_RESTORE_PRESENT_H
#define CLIENT_RESTORE_PRESENT_H

#include "client/base/cli.h"
#include "client/git/gitdir.h"
#include "proto/oid.h"

struct present_ref {
	const char *name;
	struct refd_oid oid;
	bool is_symbolic;
};

/* Zero-initialised has none. */
struct present {
	struct present_ref *refs; /* by their names */
	size_t nr, size;
	struct text list;
};

/* Runs git; its failure ends the program. */
void present_load(struct present *now, const struct gitdir *gd);
/* LIST, owned from here on, is what present_load() has from git: a line each,
 * "<oid> <name> <target or nothing>". False: it is not that. */
bool present_parse(struct present *now, struct text *list);
const struct present_ref *present_find(const struct present *now,
    const char *name);
void present_done(struct present *now);

#endif
