/*
 * What the lane thread has to itself. Private to lane.c and admit.c.
 */
#ifndef STORE_LANE_H
#define STORE_LANE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/fresh.h"
#include "daemon/store/store_internal.h"

/* A path that was looked at in this round. */
struct lane_look {
	const char *git_dir; /* borrowed from a transaction of the round */
	struct repo *repo;   /* a reference */
	UT_hash_handle hh;
};

#define LANE_OBJECTS 256

struct lane {
	struct store *store;
	struct fresh fresh;
	struct lane_look *looks; /* owned, by path */
	/* Repositories with objects to be looked at. */
	struct repo *to_check, **to_check_end;
	/* What this round is done with. */
	struct txn_fifo admitted, to_barrier;
	struct txn_fifo discarded; /* nobody needs them any more */

	/* Of the run that is under way: objects that were looked at in it,
	 * each where the first bytes of its id say. */
	uint64_t run;
	struct {
		uint64_t run;
		struct refd_oid oid;
		enum gitrepo_object object;
	} objects[LANE_OBJECTS];
};

/* lane.c: as repos_get(), for one that was asked for before this round. */
struct repo *lane_repo(struct lane *l, const char *git_dir,
    enum refd_status *status, char **why);

/* admit.c: up to its objects. False: they are of no interest any more. */
bool admit_begin(struct lane *l, struct txn *txn);
/* Before any object of REPO is asked for. */
void admit_refresh(struct store *s, struct repo *repo);
bool admit_wants_object(const struct txn_update *u);
/* What the new value of U is. True: more was read to know that. */
bool admit_object(struct txn_update *u, enum gitrepo_object object);

#endif
