/*
 * The slow log: the last transactions that took longer than a limit, with the
 * time of each step. Sessions are left out, because a prepared session waits on
 * purpose.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_SLOW_H
#define SCHEDULER_SLOW_H

#include "daemon/scheduler/measure.h"

#define SLOW_KEPT 128
#define SLOW_TEXT 256 /* maximum length of a name; longer names are cut */

struct slow_one {
	uint64_t nr;     /* 1, 2, 3, ... since the start */
	int64_t wall_ms; /* time of the decision */
	struct refd_txid txid;
	uint32_t uid;
	int64_t pid;
	enum refd_outcome outcome;
	size_t nr_refs;
	int64_t done_ns, total_ns, admit_ns, barrier_ns, queue_ns, lock_ns,
	    flush_ns, publish_ns, reply_ns;
	char repo[SLOW_TEXT], ref[SLOW_TEXT], sid[SLOW_TEXT];
};

/* Empty and off if zero-initialised. */
struct slow {
	int64_t limit_ns;      /* 0: nothing is slow */
	uint64_t nr, sent;     /* taken; and answered */
	struct slow_one *kept; /* owned ring; NULL until the first */
};

void slow_done(struct slow *s);
/* TXN is decided. REPO is the path of its repository. */
void slow_look(struct slow *s, const struct txn *txn, const char *repo,
    enum refd_outcome outcome, int64_t now_ns, int64_t wall_ms);
/* All answers so far are sent. */
void slow_sent(struct slow *s, int64_t now_ns);
/* The entry with number NR. NULL: the entry is gone or not sent yet. */
const struct slow_one *slow_get(const struct slow *s, uint64_t nr);

#endif
