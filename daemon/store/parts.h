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

	/* What only the store as a whole knows, by calls which are made without
	 * a lock and do not block. */
	struct store *store; /* the argument of all calls */
	/* The store must end, because of WHY. From now on the log must take no
	 * more rows, and nothing more is forgotten (store_fatal()). Called
	 * before the end of the batch that is the reason. */
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

/* For functions of store.h that stand beside the work that they hand over. Any
 * thread, after store_open(); borrowed from STORE. */
const struct store_parts *store_parts(const struct store *store);

#endif
