/*
 * A look in the hands of the scheduler: look.c has its steps, and look_rounds.c
 * begins automatic looks.
 */
#ifndef SCHEDULER_LOOKING_H
#define SCHEDULER_LOOKING_H

#include "daemon/scheduler/state.h"

struct looking {
	struct store_look look; /* first member */
	struct scheduler *e;
	struct txn *txn;       /* admitted; NULL: lists the repositories */
	struct waiter *waiter; /* NULL: automatic */
	int64_t begin_ns;
	uint64_t turn; /* of its user: lower ones come first */
	/* Monotonic, nanoseconds. CHANGES_NS: the time of the comparison; 0:
	 * not yet. WAIT_NS: the end of the wait for the gate; 0: no wait. */
	int64_t changes_ns, wait_ns;
	size_t nr_sent; /* changes in transactions so far */
	uint64_t nr_seen, nr_left;
	bool is_due; /* automatic: after a transaction of the gate */
	unsigned tries;
	enum { DUE_NOT, DUE_READ, DUE_HISTORY, DUE_RECORD } due;
	bool has_refs; /* or will have: from LOOK_READ to LOOK_FREE */
	LIST_ENTRY(looking) in_scheduler;
};

/* look.c. NULL: no memory. */
struct looking *look_begin(struct scheduler *e, struct txn *txn);
void look_admit(struct looking *l);
void look_end(struct looking *l);
/* REQ owns all; GIT_DIR is copied. False: no memory. */
bool look_request(struct refd_request *req, enum refd_verb verb,
    const char *git_dir);

/* look_rounds.c. The automatic look L ends. */
void look_rounds_rest(struct scheduler *e, const struct looking *l);
/* L has listed the repositories. */
void look_rounds_take(struct looking *l);
/* Begins an automatic look, when it is time. */
void look_rounds_run(struct scheduler *e, int64_t now_ns);
int64_t look_rounds_next(const struct scheduler *e);

#endif
