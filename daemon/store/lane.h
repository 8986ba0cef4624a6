/*
 * What a lane thread has to itself. Private to lane.c and admit.c.
 */
#ifndef STORE_LANE_H
#define STORE_LANE_H

#include "daemon/store/store_internal.h"

/* An object that was looked at in RUN. */
struct lane_object {
	uint64_t run;
	struct refd_oid oid;
	enum object_type type;
	enum { LANE_NOT_ASKED, LANE_PEELED, LANE_NOT_PEELED } peel;
	struct refd_oid peeled; /* what the tag is of */
};

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
	struct lane_object objects[LANE_OBJECTS];
	int objects_err; /* of odb_refresh() */
};

/* The turn's repository, with a reference of its own. NULL, *STATUS and *WHY
 * (to be freed): there is none. */
struct repo *lane_repo(struct lane *l, enum refd_status *status, char **why);

/* admit_seen.c: is TXN answered by what the journal knows? Who has is_sorting. */
bool admit_is_seen(struct store *s, struct txn *txn);
/* admit.c: up to its objects. False: they are of no interest any more. */
bool admit_begin(struct lane *l, struct txn *txn);
/* May the objects that TXN names be looked at, where odb_refresh() returned
 * ERR? False: TXN is refused. */
bool admit_objects_begin(struct store *s, struct txn *txn, int err);
bool admit_wants_object(const struct txn_update *u);
/* Decides U, whose new value is OBJECT; a tag is peeled once. */
void admit_object(struct txn_update *u, struct lane_object *object);

#endif
