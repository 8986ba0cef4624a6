/*
 * The checkpointer: one thread that makes published refs durable, so that their
 * records need no replay, and forgets these records (checkpoint.c). A round
 * follows each interval, or some hundred updates; `refd checkpoint` asks for a
 * round at once.
 *
 *	checkpointer_ask() -> asked -> the thread -> struct completions
 *
 * The struct has its own mutex and condition. The mutex guards the queue and
 * the members that other threads use. Under the mutex the checkpointer takes
 * only locks inside other modules (journal, rights, deferred), and calls no
 * callback.
 *
 * Any thread may call each function, unless its comment says otherwise.
 */
#ifndef STORE_CHECKPOINTER_H
#define STORE_CHECKPOINTER_H

#include "daemon/base/workers.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/journal/commit_log.h"
#include "daemon/store/packing/packer.h"
#include "daemon/store/parts.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/repos/rights.h"

/* The maximum of syncs at a time, and the number of workers that other work
 * leaves to syncs. */
#define CHECKPOINTER_SYNCS    4
#define CHECKPOINTER_RESERVED 2
/* Room in the WAL for the commits before a checkpoint and until the next
 * checkpoint, because a commit that makes the WAL longer needs a second flush.
 * Under load the WAL uses up to 20 MB. */
#define CHECKPOINTER_WAL_ROOM (UINT64_C(24) << 20)

struct checkpointer;

/* Before workers_start(). CFG is borrowed until checkpointer_free(). NULL: out
 * of memory. */
struct checkpointer *checkpointer_new(const struct store_parts *cfg);
/* NULL is fine. The thread does not run. */
void checkpointer_free(struct checkpointer *c);

/* For the thread that opens and closes the store. checkpointer_start(): 0 or
 * -EAGAIN. checkpointer_stop() waits for the thread and for all syncs. */
int checkpointer_start(struct checkpointer *c);
void checkpointer_stop(struct checkpointer *c);

/* How long answered updates may need replay: in general, and in the weaker
 * modes of durability. */
void checkpointer_set_intervals(struct checkpointer *c, int64_t checkpoint_ns,
    int64_t durability_ns);
/* A batch has published NR updates. */
void checkpointer_published(struct checkpointer *c, size_t nr);
/* Hands CP over, and CP comes back through COMPLETIONS. */
void checkpointer_ask(struct checkpointer *c, struct store_question *cp);
/* Runs one round, while the thread does not run. 0 or negative errno. NOW:
 * after 0, rows that need no replay are forgotten durably. */
int checkpointer_once(struct checkpointer *c, bool now);

/* Fills in the members of the last checkpoint. */
void checkpointer_stats(struct checkpointer *c, struct store_stats *stats);
/* Adds the current work of the thread and of the syncs to PROGRESS. */
void checkpointer_progress(struct checkpointer *c, int64_t before_ns,
    struct store_progress *progress);

#endif
