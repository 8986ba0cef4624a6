/*
 * Outcomes that are decided and not in the journal yet, and their way there:
 * they ride in batches that go anyway, so that a rejection costs no flush.
 *
 * An entry's notes are its updates that are decided and not recorded, but
 * for those of unknown outcome: what became of these only the journal knows.
 * While it has undecided updates its notes go with them; afterwards it is
 * kept for them in the table, where it still answers.
 *
 * Loop thread only; nothing blocks, nothing is allocated.
 */
#ifndef SCHEDULER_UNRECORDED_H
#define SCHEDULER_UNRECORDED_H

#include "daemon/scheduler/table.h"

/* Zero-initialised is empty. */
struct unrecorded {
	struct entry *first; /* decided entries kept for theirs */
	size_t nr;           /* updates of them */
};

/* U was decided. */
void unrecorded_add(struct txn_update *u);
/* After an admission: from what is decided. */
void unrecorded_collect(struct entry *ent);

/* ENT is decided and answered. false: it has none, and may go. */
bool unrecorded_keep(struct unrecorded *unrecorded, struct entry *ent);
/* Takes ENT off the list, to ride (or at the end). */
void unrecorded_unkeep(struct unrecorded *unrecorded, struct entry *ent);

/* How many of ENT's may ride where there is room for MAX; an atomic one's go
 * together. */
size_t unrecorded_nr(const struct entry *ent, size_t max);
/* Moves so many into PART, which has room. */
void unrecorded_ride(struct entry *ent, struct txn_slice *slice, size_t nr);
/* A slice of ENT's came back and some of what it decided, or carried, was
 * (or was not) RECORDED. What failed rides once more and is then dropped:
 * the journal fails, and has been told of the transaction or never heard. */
void unrecorded_rode(struct entry *ent, bool recorded);

#endif
