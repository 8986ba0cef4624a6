/*
 * The notes of the gate: the values of refs before transactions of git. A note
 * is made in phase PREPARED and used in phase COMMITTED, since different
 * processes of the client send the two requests.
 *
 * For deletions, git calls the hook for packed-refs too, within the whole
 * transaction: prepared, prepared, committed, committed. The lines of the inner
 * transaction are the deletions among the lines of the whole. The first
 * `committed` comes too early: git still holds the locks, and the deleted refs
 * may still be there. So only the last `committed` records the values. To find
 * the last, each note counts the `prepared` without an end, and the gate looks
 * for a younger note of the same process.
 *
 * After the record the note stays, and has the recorded values. The memory of
 * all notes together is limited. Beyond the limit the user with the most memory
 * loses the oldest note. Otherwise one user could push out the notes of all
 * others, and history would lack their old values. A request looks at all notes
 * of its process, so the number of notes of a process is limited, too.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_GATE_H
#define SCHEDULER_GATE_H

#include "daemon/store/txn.h"

/* The lists that a note is in (gate.c). */
enum gate_of {
	GATE_OF_USER,
	GATE_OF_PROCESS,
	GATE_OPEN_IN_REPO, /* without a record yet */
	GATE_LISTS
};

/* Nanoseconds. A transaction without an end counts as open for a minute,
 * because git may have been killed. */
#define GATE_OPEN_NS (60 * (int64_t)1000000000)

/* Empty if zero-initialised. */
struct gate {
	struct gate_list *lists[GATE_LISTS]; /* hash tables */
	size_t bytes;
	uint64_t steps; /* notes and users looked at so far, for tests */
};

void gate_done(struct gate *g);
/* Makes the note of TXN after the store has read the values of its refs.
 * REPO_KEY is the key of the repository (store_repo_key()). If memory is out,
 * no note is made. */
void gate_note(struct gate *g, const struct txn *txn, uint64_t repo_key,
    int64_t now_ns);
/* Is a transaction of git in this repository open, which was noted at AT_NS or
 * before? Then its refs may have changed, although history has no record
 * yet. */
bool gate_is_open(struct gate *g, uint64_t repo_key, int64_t at_ns,
    int64_t now_ns);
/* Phase COMMITTED: is TXN the inner part of a transaction that goes on? */
bool gate_is_nested(struct gate *g, const struct txn *txn);
/* The phase ABORTED of TXN. */
void gate_aborted(struct gate *g, const struct txn *txn);
/* Phase COMMITTED: copies the values of the note, if any, into TXN. */
void gate_fill(struct gate *g, struct txn *txn);
/* Phase COMMITTED: TXN is not taken in, so nobody waits for its record. */
void gate_refused(struct gate *g, const struct txn *txn);
/* TXN is decided: its note gets the recorded values. */
void gate_recorded(struct gate *g, const struct txn *txn);

#endif
