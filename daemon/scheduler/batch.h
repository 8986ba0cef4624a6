/*
 * Forming batches: what goes to the store together.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_BATCH_H
#define SCHEDULER_BATCH_H

#include "daemon/scheduler/ref_queue.h"
#include "daemon/scheduler/unrecorded.h"
#include "daemon/scheduler/fairness.h"

struct batch_former {
	struct fairness *fairness;
	struct ref_queues *ref_queues;
	struct unrecorded *unrecorded;
	size_t max_refs;
	size_t max_unrecorded; /* beside them */
	size_t max_share;      /* of a repository that isn't alone */
	bool unrecorded_due;   /* they are worth a batch of their own */
};

/*
 * A batch with at least one update, owned by the caller; *NR_LIVE of them
 * undecided. Its transactions are IN_BATCH (or DECIDED, with notes). One that
 * prepares a session holds nothing else. NULL: nothing may go, or memory is
 * out.
 */
struct batch *batch_form(struct batch_former *f, size_t *nr_live);

#endif
