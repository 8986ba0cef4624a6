/* A look in the hands of the scheduler: look.c has its steps. */
#ifndef SCHEDULER_LOOKING_H
#define SCHEDULER_LOOKING_H

#include "daemon/scheduler/state.h"

struct looking {
	struct store_look look; /* first member */
	struct scheduler *e;
	struct txn *txn;
	struct waiter *waiter; /* NULL: answered */
	uint64_t turn;         /* of its user: lower ones come first */
	/* Monotonic, nanoseconds. CHANGES_NS: the time of the comparison; 0:
	 * not yet. WAIT_NS: the end of the wait for the gate; 0: no wait. */
	int64_t changes_ns, wait_ns;
	size_t nr_sent; /* changes in transactions so far */
	uint64_t nr_seen, nr_left;
	enum { DUE_NOT, DUE_READ, DUE_HISTORY, DUE_RECORD } due;
	bool has_refs; /* or will have: from LOOK_READ to LOOK_FREE */
	LIST_ENTRY(looking) in_scheduler;
};

/* REQ owns all; GIT_DIR is copied. False: no memory. */
bool look_request(struct refd_request *req, enum refd_verb verb,
    const char *git_dir);

#endif
