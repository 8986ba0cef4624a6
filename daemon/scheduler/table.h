/*
 * The transactions in the scheduler's care, by the peer's uid and their id,
 * each from its submission until its outcome is recorded.
 *
 * Loop thread only; nothing blocks. The table owns its entries; an entry owns
 * its transaction, which it lends to the store.
 */
#ifndef SCHEDULER_TABLE_H
#define SCHEDULER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/scheduler/waiter.h"
#include "daemon/scheduler/heap.h"
#include "daemon/store/txn.h"

struct ref_queue;
struct quota;
struct repo_queue;

enum entry_state {
	ENTRY_ADMITTING, /* the store looks at it */
	ENTRY_DIRECT,    /* the same, and the store has its batch already */
	ENTRY_WAITING,   /* something undecided waits for a batch */
	ENTRY_PREPARED,  /* a session whose locks the store holds */
	ENTRY_IN_BATCH,  /* the store has it */
	ENTRY_DECIDED    /* all of it; its answer is given */
};

/* No padding: it is hashed as bytes. */
struct entry_key {
	uint32_t uid;
	struct refd_txid txid;
};

struct entry {
	struct txn *txn;
	enum entry_state state;
	struct entry_key key;
	UT_hash_handle hh;

	struct waiter *waiters; /* who waits for the answer */
	size_t nr_told;         /* results, to the first of them */
	size_t nr_undecided;
	/* What it becomes instead when the store gives it back: ABORTED by a
	 * cancel, say, with TEXT (static). REFD_OK: nothing else. */
	enum refd_status end_status;
	const char *end_text;
	bool has_given_up; /* on a lock: the batch's last word */
	bool is_misplaced; /* its repository is another one now */
	unsigned reopens;

	/* All undecided updates go together: of an atomic one, of a session,
	 * and where two of its names are directory and file. */
	bool goes_whole;
	/* Such names, or the same twice, go one after the other instead. */
	bool goes_in_order;

	struct heap_link deadline;
	int64_t deadline_ns; /* when PREPARED: of its locks */
	int64_t prepared_ns; /* since when it is */
	bool is_timed;       /* it is in the heap of deadlines */

	/* session.c: of a session, until it is decided. */
	void *client;             /* whose it is; NULL: gone */
	struct batch *batch;      /* PREPARED: what ends it. NULL: empty */
	enum batch_session phase; /* of the batch it was in last */
	bool is_untold;           /* PREPARED, and its client is to be told */
	struct entry *next_session, *prev_session;

	/* ref_queue.c: names whose first update is ours and that may be tried.
	 * */
	uint64_t arrival; /* of the first update; the k-th has arrival + k */
	struct ref_queue *up;
	size_t nr_up;

	/* quota.c: whose it counts as, until it is decided. */
	struct quota *of_user, *of_repo;
	const void *sender; /* its first client; compared, not looked into */
	uint32_t retry_after_ms; /* its repository has its share */

	/* fairness.c: the repository's queue. */
	struct repo_queue *queue;
	bool is_ready, goes_first;
	struct entry *next, *prev; /* ready, untold, decided or kept for its
				      notes */
	bool is_arriving;
	size_t nr_arrived; /* updates that have a name to wait at */
	struct entry *next_arriving, *prev_arriving;

	/* unrecorded.c: decided, not recorded. */
	struct txn_update *unrecorded, *last_unrecorded;
	size_t nr_unrecorded;
	unsigned failed_rides;
	bool is_kept;
};

/* Zero-initialised is empty. */
struct table {
	struct entry *head;
};

/* Takes TXN over, in state ADMITTING. NULL when out of memory. */
struct entry *table_add(struct table *t, struct txn *txn);
/* The entry must be in no list any more. Its transaction is the caller's. */
struct txn *table_remove(struct table *t, struct entry *ent);
/* All of them, whatever list they were in; their waiters must be gone. */
void table_done(struct table *t);

struct entry *table_find(const struct table *t, uint32_t uid,
    const struct refd_txid *txid);
/* As PEER may: its own, and root anybody's. */
struct entry *table_find_for(const struct table *t, uint32_t peer,
    const struct refd_txid *txid);

/* The one way to change a state; asserts that the move is allowed. */
void entry_move(struct entry *ent, enum entry_state to);
/* Does the store look at it, and has the store not been told to apply it, or may
 * the store still refuse to apply it? */
static inline bool entry_is_admitting(const struct entry *ent)
{
	return ent->state == ENTRY_ADMITTING || ent->state == ENTRY_DIRECT;
}

/* Is the transaction in the store's hands? Then nobody here touches it. */
bool entry_is_lent(const struct entry *ent);
/* What of ENT is still undecided when it can be decided gets STATUS and TEXT
 * (static). The first reason counts. */
void entry_give_up(struct entry *ent, enum refd_status status,
    const char *text);

static inline bool entry_is_session(const struct entry *ent)
{
	return ent->txn->req.verb == REFD_VERB_SESSION;
}

static inline struct entry *entry_of(const struct txn_update *u)
{
	return u->txn->scheduler;
}

#endif
