/*
 * The table of transactions in flight, by the uid of the peer and the
 * transaction id. A transaction stays from its submission until its outcome is
 * recorded.
 *
 * Loop thread only; nothing blocks. The table owns its entries. An entry owns
 * its transaction, and lends the transaction to the store.
 */
#ifndef SCHEDULER_TABLE_H
#define SCHEDULER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/hash.h"
#include "daemon/scheduler/heap.h"
#include "daemon/scheduler/waiter.h"
#include "daemon/store/txn.h"

struct ref_queue;
struct quota;
struct repo_queue;

enum entry_state {
	ENTRY_ADMITTING, /* the store checks the transaction */
	ENTRY_DIRECT,    /* the same; the store has the batch too */
	ENTRY_WAITING,   /* some update waits for a batch */
	ENTRY_PREPARED,  /* a session; the store holds the locks */
	ENTRY_IN_BATCH,  /* the store has the batch */
	ENTRY_ENDING, /* its undecided updates get a status, some at a time */
	ENTRY_DECIDED /* no undecided update is left */
};
#define ENTRY_STATES (ENTRY_DECIDED + 1)

/* No padding: hashed as bytes. */
struct entry_key {
	uint32_t uid;
	struct refd_txid txid;
};

/* session.c: of an undecided session. */
struct entry_session {
	void *client;        /* owner of the session; NULL: gone */
	struct batch *batch; /* PREPARED: the batch for the end. NULL: empty */
	enum batch_session phase; /* of the latest batch */
	bool is_untold;           /* PREPARED, and the client must be told */
	struct entry *next, *prev;
};

/* quota.c: the charged quotas, until the entry is decided. */
struct entry_quota {
	struct quota *of_user, *of_repo;
	const void *sender;      /* first client; only compared */
	uint32_t retry_after_ms; /* the repository's quota is used up */
};

/* decide.c: ENDING. */
struct entry_ending {
	enum refd_status status;
	const char *text;
	size_t at;    /* the next update */
	bool is_late; /* first, updates that found a lock get LOCKED */
	struct entry *next, *prev;
};

/* unrecorded.c: decided updates without a record. */
struct entry_notes {
	struct txn_update *first, *last;
	size_t nr;
	unsigned failed_rides;
	bool is_kept;
	bool is_riding; /* DECIDED, and a batch has updates of it */
};

struct entry {
	struct table *table;
	struct txn *txn;
	enum entry_state state;
	struct entry_key key;
	UT_hash_handle hh;

	struct waiter *waiters;  /* they wait for the answer */
	struct entry *next_left; /* while its client is forgotten */
	bool is_left;
	size_t nr_told; /* results sent to the first waiter */
	/* In scheduler.decided or .decided_large. An entry without a record yet
	 * is told once more if another request asks for its results: it may be
	 * kept, or go along in a batch (unrecorded.h). */
	bool is_telling;
	struct entry *next_telling, *prev_telling;
	size_t nr_undecided;
	/* The status, with TEXT (static), for the undecided updates when the
	 * store gives the entry back, for example ABORTED after a cancel.
	 * REFD_OK: no such status. */
	enum refd_status end_status;
	const char *end_text;
	bool has_given_up; /* the wait for a lock is over */
	bool is_misplaced; /* the path has a different repository now */
	unsigned reopens;
	/* scheduler.nr_pauses when the store began to check the objects. A
	 * pause since then ends the check (is_fresh() of batch.c). */
	unsigned nr_pauses;

	/* All undecided updates go together: in an atomic transaction and in a
	 * session (table_add()), and if a name of the transaction lies above
	 * another (ref_queue.c). */
	bool goes_whole;
	/* Instead of going together, related or equal names of the transaction
	 * go one after the other (table_add()). */
	bool goes_in_order;

	struct heap_link deadline;
	int64_t deadline_ns; /* PREPARED: end of the locks */
	int64_t prepared_ns; /* start of PREPARED */
	bool is_timed;       /* in the heap of deadlines */

	struct entry_session session;
	struct entry_ending ending;

	/* ref_queue.c: the names that are up, where an update of this entry is
	 * first and may be tried. */
	uint64_t arrival; /* of the first update; the k-th has arrival + k */
	struct ref_queue *up, *up_deleting;
	size_t nr_up; /* in both lists; settle() of ref_queue.c counts */
	/* A batch holds the names that are up of updates from this number on.
	 * SIZE_MAX: no such name. */
	size_t held_from;
	/* The first deletion; the updates before are decided, or do not
	 * delete. NULL: no update deletes. */
	struct txn_update *deletion;

	struct entry_quota quota;

	/* fairness.c: the queue of the repository; NULL: in no queue.
	 * fairness_join() sets it after admission, or, on the direct way,
	 * before admission. fairness_leave() clears it. */
	struct repo_queue *queue;
	bool is_ready, goes_first;
	/* Its deletions wait until another batch with deletions is back. */
	bool is_parked;
	struct entry *next_parked, *prev_parked;
	/* ready, put aside (batch.c), untold, or kept for unrecorded
	 * updates */
	struct entry *next, *prev;
	bool is_arriving;
	size_t nr_arrived; /* updates that are queued at their names */
	struct entry *next_arriving, *prev_arriving;

	struct entry_notes notes;
};

/* Empty if zero-initialised. */
struct table {
	struct entry *head;
	size_t nr_in[ENTRY_STATES];
};

/* Takes TXN over, in state ADMITTING. NULL: out of memory. */
struct entry *table_add(struct table *t, struct txn *txn);
/* ENT must be in no list any more. Returns its transaction to the caller. */
struct txn *table_remove(struct table *t, struct entry *ent);
/* Frees all entries, in any list. No waiter may be left. */
void table_done(struct table *t);

struct entry *table_find(const struct table *t, uint32_t uid,
    const struct refd_txid *txid);
/* PEER finds only his own transaction; root finds the transaction of any
 * user. */
struct entry *table_find_for(const struct table *t, uint32_t peer,
    const struct refd_txid *txid);

/* The only function that changes a state, so no move escapes its assertion that
 * the table allows the move. */
void entry_move(struct entry *ent, enum entry_state to);
/* Does the store check the transaction, without a batch yet, or with a batch
 * which the store may still refuse? */
static inline bool entry_is_admitting(const struct entry *ent)
{
	return ent->state == ENTRY_ADMITTING || ent->state == ENTRY_DIRECT;
}

/* Does the store hold the transaction? Then the scheduler must not touch it. */
bool entry_is_lent(const struct entry *ent);
/* Sets STATUS and TEXT (static) for all updates of ENT that are still undecided
 * when the scheduler may decide them. The first reason counts. */
void entry_give_up(struct entry *ent, enum refd_status status,
    const char *text);

/* A waits for the answer of ENT. */
void entry_wait(struct entry *ent, struct waiter *a);

static inline bool entry_is_session(const struct entry *ent)
{
	return ent->txn->req.verb == REFD_VERB_SESSION;
}

static inline struct entry *entry_of(const struct txn_update *u)
{
	return u->txn->scheduler;
}

#endif
