/*
 * Shared by scheduler_rig.c, tests/double/store.c and scheduler_rig_check.c.
 */
#ifndef TESTS_LIB_SCHEDULER_RIG_INTERNAL_H
#define TESTS_LIB_SCHEDULER_RIG_INTERNAL_H

#include "tests/lib/scheduler_rig.h"

/* A replacement for libcheck's assertions: each of these writes to a file,
 * which is too slow for a check of every update of every batch. */
#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition))                                              \
			ck_abort_msg("%s", #condition);                        \
	} while (0)

extern struct rig_config rig_config;
extern struct rig_ask *rig_asks; /* in the order of the requests */
extern size_t rig_nr_asks;
/* The pid of a transaction is the number of its arrival: the submission if the
 * transaction goes the direct way, else the admission. */
extern int64_t rig_arrivals;

extern size_t rig_nr_repos; /* references not given back */
void rig_store_setup(void);

/* Does a transaction come back from admission? */
bool rig_has_admitted(void);
unsigned rig_repo_of(const struct txn *txn);
/* Does TXN, which was admitted before, keep its names while the store checks
 * its objects once more? */
bool rig_is_checked_again(const struct txn *txn);
/* The ends of sessions, and the looks of gates. */
bool rig_holds_no_names(const struct batch *b);
/* W is not among rig_batches yet. */
void rig_check_batch(const struct batch *w);
/* Checks that the store has room for W, which is not in rig_batches yet. */
void rig_check_room(const struct batch *w);
/* Checks W before it is given back. */
void rig_check_back(const struct batch *w);

#endif
