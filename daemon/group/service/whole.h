/*
 * Are the objects of a repository of this node whole? The happy path:
 *
 *	1. git-fsck(1) reads all objects, in packs and loose, and looks for the
 *	   objects that the refs need. A check that finds something is repeated:
 *	   git-gc(1) may have replaced files amid the first one.
 *	2. If git complains, git-verify-pack(1) tells which of the packs that
 *	   git has named are damaged, and git-cat-file(1) which objects are
 *	   missing. A complaint of what an object says is no damage.
 *	3. For a repair, all objects come from another node into refd/fetched/
 *	   of the repository, as to a new clone. git checks them there.
 *	4. The damaged packs, and loose objects that git has named, are moved to
 *	   refd/damaged/, and the fetched packs take their place.
 *
 * Failures: a repair that fails before step 4 changes nothing. After a crash in
 * step 4, objects may be missing, and the next repair fetches again. Nothing
 * that was found damaged is ever deleted.
 *
 * git runs as in a fetch (fetch.h). One thread; a check, with what it prints,
 * blocks for as long as git reads all objects, at most six hours, because the
 * other repositories wait. The fetch of a repair and the exchange of the files
 * have the same limit each.
 */
#ifndef GROUP_SERVICE_WHOLE_H
#define GROUP_SERVICE_WHOLE_H

#include "daemon/group/service/fetch_git.h"
#include "daemon/group/service/fetch_repo.h"

struct whole {
	const struct fetch_site *site; /* borrowed, as is WISH */
	const struct fetch_wish *wish; /* path and format */
	struct fetch_repo repo;
	uint64_t until_ms; /* of clock_now_ms(): no git runs after it */
	/* A line with the id of each ref, and of each replaced value in
	 * packed-refs; owned. */
	struct text heads;
	/* A line with the id of each ref that other nodes have, too. Replaced
	 * values are left out, because a missing object of such a value is no
	 * damage. Owned. */
	struct text needed;
	/* What git says against objects, even of WHOLE ones; owned. */
	struct text said;
	bool has_named_packs; /* SAID names each damaged pack */
};

enum whole_state { WHOLE, WHOLE_DAMAGED, WHOLE_UNKNOWN };

/* Opens the repository wish->path below ROOT. False: WHY is the reason.
 * whole_done() in any case. */
bool whole_open(struct whole *w, const char *root, struct text *why);
/* DAMAGED is only what no push can make. A malformed object that a push has
 * brought is WHOLE. UNKNOWN: WHY is the reason. */
enum whole_state whole_check(struct whole *w, struct text *why);
/* Prints the first lines of git; DAMAGED: and each damaged pack. */
void whole_print(const struct whole *w, enum whole_state state);
/* Fetches the ids of WANTED, a line each, from SOURCE. The wish has the path
 * there. After true, the caller checks again. False: WHY is the reason. */
bool whole_repair(struct whole *w, const char *source,
    const struct text *wanted, struct text *why);
void whole_done(struct whole *w);

#endif
