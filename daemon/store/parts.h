/*
 * The parts of one store that other parts use, so that each part is made with
 * a single pointer and finds its neighbours there.
 *
 * The store fills this in as it makes its parts, before workers_start(), and
 * nothing changes afterwards, so any thread may read it. A part that is made
 * later is NULL until then.
 */
#ifndef STORE_PARTS_H
#define STORE_PARTS_H

#include "daemon/store/store.h"

struct store_parts {
	const struct sys *sys;
	const struct store_config *config;
	const char *state_dir; /* may differ from the pointer in CONFIG */
	int state_fd;
	struct workers *workers;
	struct repos *repos;
	struct sync_failures *sync_failures;
	struct rights *rights;
	struct commit_log *log;
	struct journal *journal; /* of LOG */
	struct completions *completions;
	struct barriers *barriers;
	struct deferred *deferred;
	struct pipeline *pipeline;
	struct packer *packer;
	struct admissions *admissions;
	struct replica *replica;

	/* By these calls a part asks or tells the store as a whole what only
	 * the whole store knows. The part holds no lock, and the calls do not
	 * block. */
	struct store *store; /* the argument of all calls */
	/* The store must end, because of WHY. From now on the log must take no
	 * more rows, and nothing more is forgotten (store_fatal()). If a batch
	 * is the reason, the call comes before the end of this batch. */
	void (*fatal)(void *store, const char *why);
	/* A batch of NR updates came back, so pipeline_visible_lsn() may have
	 * become higher. */
	void (*committed)(void *store, size_t nr);
	/* An admission worker shall take the turn of DEFERRED. */
	void (*retry)(void *store);
	/* As in struct store_recovery. */
	int (*has_object)(void *store, struct repo *repo,
	    const struct refd_oid *oid);
	uint64_t (*next_token)(void *store);
};

/* Some functions of store.h stand in the part that does their work, and not in
 * store.c. By this call such a function finds the parts of STORE. Any thread,
 * after store_open(); borrowed from STORE. */
const struct store_parts *store_parts(const struct store *store);

#endif
