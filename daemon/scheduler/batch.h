/*
 * Forms batches: selects the updates that go to the store together.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_BATCH_H
#define SCHEDULER_BATCH_H

#include "daemon/scheduler/fairness.h"
#include "daemon/scheduler/ref_queue.h"
#include "daemon/scheduler/unrecorded.h"

struct batch_former {
	struct fairness *fairness;
	struct ref_queues *ref_queues;
	struct unrecorded *unrecorded;
	size_t max_refs;
	size_t max_unrecorded; /* besides the live refs */
	size_t max_share;      /* for a repository while several are ready */
	bool unrecorded_due;   /* recording them is worth a batch */
	int64_t now_ns;
	unsigned nr_pauses; /* scheduler.nr_pauses */
	/* Filled in by batch_form(): entries which had their turn, but became
	 * ADMITTING, because somebody may have removed their objects while they
	 * waited. A list by next and prev. */
	struct entry *stale;
};

/* Is there an update for a batch? The names may not be free. */
bool batch_is_wanted(const struct batch_former *f);
/*
 * Call after batch_is_wanted(). Returns a batch with at least one update; the
 * caller owns the batch. The transactions of the batch are IN_BATCH (or
 * DECIDED, with unrecorded updates). A batch that prepares a session holds only
 * this session. NULL: nothing can go, or memory is out.
 */
struct batch *batch_form(struct batch_former *f);
/* A batch of all undecided updates of ENT, which holds no names and keeps its
 * state. NULL: memory is out. */
struct batch *batch_of_whole(const struct entry *ent);

#endif
