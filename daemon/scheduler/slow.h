/*
 * The slow log: the last transactions that took longer than a limit, and
 * where their time went. What waits on purpose, a prepared session, is none.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_SLOW_H
#define SCHEDULER_SLOW_H

#include "daemon/scheduler/measure.h"

#define SLOW_KEPT 128
#define SLOW_TEXT 256 /* of a name; longer ones are cut */

struct slow_one {
	uint64_t nr;     /* 1, 2, 3, ... since the start */
	int64_t wall_ms; /* when it was decided */
	struct refd_txid txid;
	uint32_t uid;
	int64_t pid;
	enum refd_outcome outcome;
	size_t nr_refs;
	int64_t done_ns, total_ns, admit_ns, barrier_ns, queue_ns, lock_ns,
	    flush_ns, publish_ns, reply_ns;
	char repo[SLOW_TEXT], ref[SLOW_TEXT], sid[SLOW_TEXT];
};

/* Zero-initialised is empty, and off. */
struct slow {
	int64_t limit_ns;      /* 0: nothing is slow */
	uint64_t nr, sent;     /* taken; and answered */
	struct slow_one *kept; /* owned ring; NULL until the first */
};

void slow_done(struct slow *s);
/* TXN is decided; REPO is its path. */
void slow_look(struct slow *s, const struct txn *txn, const char *repo,
    enum refd_outcome outcome, int64_t now_ns, int64_t wall_ms);
/* What was looked at so far is sent. */
void slow_sent(struct slow *s, int64_t now_ns);
/* That of number NR, or NULL: it is not kept, or not sent yet. */
const struct slow_one *slow_get(const struct slow *s, uint64_t nr);

#endif
