/*
 * What a lane thread has to itself. Private to lane.c and admit.c.
 */
#ifndef STORE_LANE_H
#define STORE_LANE_H

#include "daemon/store/store_internal.h"

#define LANE_OBJECTS 256

struct lane {
	struct store *store;
	size_t slot;
	/* Of this turn: what is at its path, with a reference, or why it can't
	 * be had; owned. */
	struct repo *repo;
	enum refd_status status;
	char *why;
	/* What it is done with. */
	struct txn_fifo admitted, to_barrier;

	/* Of the run that is under way: objects that were looked at in it,
	 * each where the first bytes of its id say. */
	uint64_t run;
	struct {
		uint64_t run;
		struct refd_oid oid;
		enum gitrepo_object object;
	} objects[LANE_OBJECTS];
};

/* The turn's repository, with a reference of its own. NULL, *STATUS and *WHY
 * (to be freed): there is none. */
struct repo *lane_repo(struct lane *l, enum refd_status *status, char **why);

/* admit.c: is TXN answered by what the journal knows? Who has is_sorting. */
bool admit_is_seen(struct store *s, struct txn *txn);
/* admit.c: up to its objects. False: they are of no interest any more. */
bool admit_begin(struct lane *l, struct txn *txn);
/* Before any object of REPO is asked for. */
void admit_refresh(struct store *s, struct repo *repo);
bool admit_wants_object(const struct txn_update *u);
/* What the new value of U is. True: more was read to know that. */
bool admit_object(struct txn_update *u, enum gitrepo_object object);

#endif
