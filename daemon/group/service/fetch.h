/*
 * Brings objects of another node into a repository of this node, with git. The
 * happy path:
 *
 *	1. The repository with the uuid is opened beneath a root: at its path,
 *	   aside (.refd-<uuid> beside its path), or wherever else it is. If this
 *	   node does not have the repository, the repository is made aside, and
 *	   its first row puts it in its place. A fetch comes out of the order of
 *	   the rows, so the path may still belong to a different repository.
 *	   A repository without a guard against writes by git gets a guard
 *	   (guard.h).
 *	2. The values of its refs, as far as their objects exist, and the bases
 *	   that are connected to them, become the refs of an own git-dir.
 *	3. git fetches the objects, and checks that everything which the objects
 *	   need is there.
 *	4. The file system of the objects is synced.
 *
 * Failures: the repository gets no object, or objects that no ref needs, so a
 * later attempt begins from the start. Base objects that are missing or not
 * connected cost only time.
 *
 * The files of the repository are hostile. So nothing of the repository is read
 * as a configuration, and alternates are refused (docs/decisions/027-held.md).
 *
 * Any thread, also several at once; blocks for minutes. Out of memory ends the
 * program.
 */
#ifndef GROUP_SERVICE_FETCH_H
#define GROUP_SERVICE_FETCH_H

#include "daemon/group/service/guard.h"
#include "proto/lib/cli.h"
#include "proto/oid.h"

/* This node. Borrowed. */
struct fetch_site {
	char *const *roots; /* absolute paths; a new repository is made in the
			     * first one */
	size_t nr_roots;    /* at least one */
	const char *dir;    /* of fetch_dirs_make() */
	struct guard guard;
};

/* One repository. Borrowed. */
struct fetch_wish {
	const char *source; /* where the root of the other node is: a URL with
			      * "://", or an absolute path */
	const char *source_path; /* of the repository, below that root */
	const char *path;        /* of a new repository here, below a root */
	const uint8_t *uuid;     /* 16 bytes */
	bool is_new;             /* no search: no node can have it elsewhere */
	bool copies;             /* all refs come with it (join.c) */
	enum refd_object_format format;
	const struct refd_oid *oids;  /* wanted; of any type */
	size_t nr_oids;               /* 0: only the repository is needed */
	const struct refd_oid *bases; /* this node may have them */
	size_t nr_bases;
	int cancel; /* readable: the fetch ends soon; -1: never */
};

/*
 * Makes the git-dirs for all fetches in the new directory DIR, in place of an
 * old DIR. Ends the program on failure.
 */
void fetch_dirs_make(const char *dir);

/*
 * True: the wanted objects and all objects which they need are durable in the
 * repository. False: WHY is the reason, without a text of git or of a file. The
 * messages of git go to standard error.
 */
bool fetch_run(const struct fetch_site *site, const struct fetch_wish *wish,
    struct text *why);

#endif
