/*
 * The inner members of the store, private to store*.c.
 *
 * Work comes from a queue and is done by a worker of the pool (base/workers.h)
 * or by the checkpointer. The result goes to the completions (completions.h) or
 * to the next queue. docs/threads.md lists all threads, and the order of all
 * locks.
 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

#include "daemon/base/mutex.h"
#include "daemon/base/workers.h"
#include "daemon/store/admission/admissions.h"
#include "daemon/store/barrier/barriers.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/fifos.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/looking/looker.h"
#include "daemon/store/packing/packer.h"
#include "daemon/store/parts.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/recovery/recover.h"
#include "daemon/store/stages.h"
#include "daemon/store/store.h"

/* Threads of the pool. */
#define STORE_WORKERS 24

struct checkpointer;
struct historian;

struct store {
	const struct sys *sys;
	struct store_config cfg;
	char *state_dir;
	char **roots;
	int state_fd, state_lock_fd;
	char boot_id[40];
	struct this_boot this_boot;

	struct store_parts parts; /* share() in store_open.c */
	struct workers *workers;
	struct repos repos;
	struct sync_failures *sync_failures; /* shared with repos */
	struct rights rights;
	struct barriers barriers;
	struct completions completions;

	struct deferred *deferred; /* with its own locks: deferred.h */

	struct commit_log *log;
	struct journal *journal;       /* of LOG */
	struct admissions *admissions; /* with its own mutex */
	struct pipeline *pipeline;
	struct replica *replica;
	struct replica alone;  /* the null object, and REPLICA points to it */
	struct packer *packer; /* with its own mutex */
	struct looker *looker; /* with its own mutex */
	struct historian *historian;       /* with its own mutex */
	struct checkpointer *checkpointer; /* with its own mutex */
	char *recover_why; /* store_recover_why(); NULL: a damaged record */

	/* Protects FATAL. */
	struct mutex mutex;
	/* Only for the thread that opens, starts, stops and frees the store. */
	bool started;
	/* The reason why the store must end; "": none. Set once, in a fixed
	 * array, because the reason may be a lack of memory. */
	char fatal[512];
};

/* store.c */
void store_set_fatal(struct store *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* commit_log_config.failed */
void store_log_failed(void *store, const char *why);

void store_tell(const struct store *s, enum store_event event,
    const char *place, const char *why);

/* store_open_sync_failures.c. Makes s->sync_failures, which s->repos uses too.
 * Returns 0, or a negative errno and *WHY, and frees *WARNING if there is a new
 * warning. */
int store_open_sync_failures(struct store *s, char **warning, char **why);
/* store_open.c. Make s->deferred, then s->pipeline, then s->packer and
 * s->looker with s->checkpointer, once the log is open. 0, -ENOMEM. */
int store_open_deferred(struct store *s);
int store_open_pipeline(struct store *s);
void store_open_barriers(struct store *s);
/* store_open.c. S gets the replica of its configuration, or the null object. */
void store_init_replica(struct store *s);
int store_open_checkpointer(struct store *s);

#endif
