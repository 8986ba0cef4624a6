/*
 * Decided outcomes without a record in the journal. They go along with a batch
 * that is written anyway, so that a rejection costs no flush.
 *
 * An unrecorded update is decided but has no record. Updates with an unknown
 * outcome do not count, because only the journal knows their outcome. While the
 * entry has undecided updates, the unrecorded updates go with them. Afterwards
 * the table keeps the entry, and answers from it, until they are recorded.
 *
 * Loop thread only; nothing blocks, nothing is allocated.
 */
#ifndef SCHEDULER_UNRECORDED_H
#define SCHEDULER_UNRECORDED_H

#include "daemon/scheduler/table.h"

/* Empty if zero-initialised. */
struct unrecorded {
	struct entry *first; /* decided entries, kept until recorded */
	size_t nr;           /* unrecorded updates of kept entries */
};

/* U was decided. */
void unrecorded_add(struct txn_update *u);
/* Collects the updates of ENT that admission decided. */
void unrecorded_collect(struct entry *ent);

/* ENT is decided and answered. Keeps ENT if it has unrecorded updates. False:
 * ENT has none and can be freed. A transaction that did nothing gets no outcome
 * if one of its updates has `busy`, `deadline` or `unsupported`. */
bool unrecorded_keep(struct unrecorded *unrecorded, struct entry *ent);
/* Takes ENT off the list of kept entries. */
void unrecorded_unkeep(struct unrecorded *unrecorded, struct entry *ent);

/* How many unrecorded updates of ENT may go along if there is room for MAX. All
 * unrecorded updates of an atomic transaction go together, even beyond MAX. */
size_t unrecorded_nr(const struct entry *ent, size_t max);
/* Moves NR unrecorded updates of ENT into SLICE, which has room. */
void unrecorded_ride(struct entry *ent, struct txn_slice *slice, size_t nr);
/* A slice of ENT is back. RECORDED: the journal recorded all its outcomes.
 * After two failures in a row the unrecorded updates of ENT are dropped,
 * because the journal fails. */
void unrecorded_rode(struct entry *ent, bool recorded);

#endif
