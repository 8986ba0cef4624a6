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
	const char *boot_id;
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
	/* The log must take no more rows, and nothing more is forgotten.
	 * Becomes true before the end of the batch that is the reason. */
	bool (*is_fatal)(void *store);
	/* The store must end, because of WHY. */
	void (*fatal)(void *store, const char *why);
	/* The loop shall look, because pipeline_takes() has become true, and no
	 * batch came back. */
	void (*wake)(void *store);
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

#endif
