/*
 * The loose refs of a repository that may be packed: plain values below refs/,
 * with their objects. Not: symbolic and broken refs, refs without an object,
 * refs of a worktree, names that git would not create.
 *
 * The files are hostile input, so only regular files are read, and no link is
 * followed. The search is bounded by the limits below, and memory by PACK_REFS
 * and PACK_NAME_BYTES.
 *
 * One thread; blocks; nothing logs.
 */
#ifndef STORE_PACK_NAMES_H
#define STORE_PACK_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/sys.h"
#include "proto/oid.h"

/* Refs in a round, and the bytes of their names. */
#define PACK_REFS       4096
#define PACK_NAME_BYTES ((size_t)1 << 20)
/* A search looks at this many entries at most. Each level has a descriptor
 * open, so the depth has a limit, too. */
#define PACK_ENTRIES 1000000
#define PACK_DEPTH   24

struct pack_ref {
	char *name; /* in NAMES */
	struct refd_oid oid;
	int64_t mtime_ns; /* of the loose file */
	bool is_tag;      /* annotated: PEELED is the object it leads to */
	struct refd_oid peeled;
	bool is_packed; /* packed-refs has the value */
};

struct pack_names {
	/* Set by the caller; borrowed. SYS resolves the paths of single refs,
	 * and may keep directories open. */
	const struct sys *sys;
	int dirfd; /* of the common dir */
	enum refd_object_format format;
	/* Returns 1 if OID is an annotated tag that leads to *PEELED, 0 for any
	 * other object, and a negative errno if the ref must stay loose. */
	int (*peel)(void *arg, const struct refd_oid *oid,
	    struct refd_oid *peeled);
	void *arg;

	/* Results, owned, sorted by the bytes of the names. */
	struct pack_ref *refs;
	size_t nr;
	bool is_full; /* there may be more */

	char *names;
	size_t names_len, left;
	unsigned depth;
};

/* 0 or negative errno, but call pack_names_done() in any case. */
int pack_names_find(struct pack_names *p);
void pack_names_done(struct pack_names *p);

#endif
