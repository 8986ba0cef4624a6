/*
 * The looker: the parts of a look that read and write files, on a worker.
 *
 *	LOOK_READ	reads the refs as last known (seen_refs.h), and the refs
 *			on disk
 *	the scheduler	adds the records of history to the known refs
 *	LOOK_COMPARE	lists the differences, and writes the known refs
 *	the scheduler	submits the differences, to be checked under the locks
 *	LOOK_FREE	frees the refs, which takes long
 *
 * One small and one large look work on a file system at a time (seen_refs.h),
 * so a slow disk keeps at most two workers, and small looks never wait for
 * large looks. The mutex of the struct guards the queue, so any thread may call
 * each function.
 */
#ifndef STORE_LOOKER_H
#define STORE_LOOKER_H

#include "daemon/base/workers.h"
#include "daemon/store/completions.h"
#include "daemon/store/parts.h"
#include "daemon/store/pipeline/pipeline.h"

/* The maximum of looks at a time, and the number of workers that other work
 * leaves to looks. */
#define LOOKER_WORKERS  3
#define LOOKER_RESERVED 1

struct looker;

/* Before workers_start(), with CFG borrowed until looker_free(). NULL: out of
 * memory. */
struct looker *looker_new(const struct store_parts *cfg);
/* NULL is fine. After workers_stop(), because a worker uses the looker. */
void looker_free(struct looker *looker);
/* Hands LOOK over, which comes back through COMPLETIONS after one step. */
void looker_ask(struct looker *looker, struct store_look *look);
/* Adds the looks in work to PROGRESS (store_progress()). */
void looker_progress(struct looker *looker, int64_t before_ns,
    struct store_progress *progress);

#endif
