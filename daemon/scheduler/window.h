/*
 * Forming windows: what goes to the store together.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_WINDOW_H
#define SCHEDULER_WINDOW_H

#include "daemon/scheduler/ref_queue.h"
#include "daemon/scheduler/unrecorded.h"
#include "daemon/scheduler/fairness.h"

struct window_former {
	struct fairness *fairness;
	struct ref_queues *ref_queues;
	struct unrecorded *unrecorded;
	size_t max_refs;
	size_t max_unrecorded; /* beside them */
	size_t max_share;      /* of a repository that isn't alone */
	bool unrecorded_due;   /* they are worth a window of their own */
};

/*
 * A window with at least one update, owned by the caller; *NR_LIVE of them
 * undecided. Its transactions are IN_WINDOW (or DECIDED, with notes). One that
 * prepares a session holds nothing else. NULL: nothing may go, or memory is
 * out.
 */
struct window *window_form(struct window_former *f, size_t *nr_live);

#endif
