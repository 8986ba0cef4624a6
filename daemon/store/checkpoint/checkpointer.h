/*
 * The checkpointer: one thread that makes durable what was published, so that
 * its records need no replay, and forgets these records (checkpoint.c). A round
 * follows each interval; `refd checkpoint` asks for a round at once.
 *
 *	checkpointer_ask() -> asked -> the thread -> struct completions
 *
 * The struct has a mutex and a condition of its own. The mutex guards the queue
 * and all that other threads ask of the checkpointer. Under the mutex the
 * checkpointer takes only locks inside other modules (journal, rights,
 * deferred), and calls no callback.
 *
 * Any thread may call each function, unless its comment says otherwise.
 */
#ifndef STORE_CHECKPOINTER_H
#define STORE_CHECKPOINTER_H

#include "daemon/base/workers.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/journal/commit_log.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/repos/rights.h"
#include "daemon/store/store.h"

/* Syncs that run at a time, and workers that other work leaves to syncs. */
#define CHECKPOINTER_SYNCS    4
#define CHECKPOINTER_RESERVED 2
/* The room of the WAL: the commits before a checkpoint, and those before the
 * next one. */
#define CHECKPOINTER_WAL_ROOM (UINT64_C(4) << 20)

struct checkpointer;

/* All pointers are borrowed until checkpointer_free(). The checkpointer calls
 * the callbacks without a lock. */
struct checkpointer_config {
	const struct sys *sys;
	struct workers *workers; /* for syncs; run while the thread does */
	const char *state_dir;
	int state_fd; /* of STATE_DIR */
	struct repos *repos;
	struct commit_log *log;
	struct rights *rights;
	struct deferred *deferred;
	struct pipeline *pipeline;
	struct completions *completions;
	/* Must nothing be forgotten any more? True before the batch ends that
	 * is the reason. */
	bool (*is_fatal)(void *arg);
	/* An admission thread shall take the turn of DEFERRED. */
	void (*retry)(void *arg);
	void *arg;
};

/* Before workers_start(). NULL: out of memory. */
struct checkpointer *checkpointer_new(const struct checkpointer_config *cfg);
/* NULL is fine. The thread does not run. */
void checkpointer_free(struct checkpointer *c);

/* Both for the thread that opens and closes the store. checkpointer_start():
 * 0 or -EAGAIN. checkpointer_stop() waits for the thread and for every sync. */
int checkpointer_start(struct checkpointer *c);
void checkpointer_stop(struct checkpointer *c);

/* How long updates that were answered may need replay: in general, and in the
 * weaker modes of durability. */
void checkpointer_set_intervals(struct checkpointer *c, int64_t checkpoint_ns,
    int64_t durability_ns);
/* Hands CP over. CP comes back through COMPLETIONS. */
void checkpointer_ask(struct checkpointer *c, struct store_checkpoint *cp);
/* One round, while the thread does not run. NOW: records that need no replay
 * are forgotten durably when this returns 0. Otherwise negative errno. */
int checkpointer_once(struct checkpointer *c, bool now);

/* Fills in the members of the last checkpoint. */
void checkpointer_stats(struct checkpointer *c, struct store_stats *stats);
/* Adds the current work of the thread and of the syncs to PROGRESS. */
void checkpointer_progress(struct checkpointer *c, int64_t before_ns,
    struct store_progress *progress);

#endif
