/*
 * The queues of ref names. Every name has a queue of updates in the order of
 * arrival. The names of a repository form a tree by "/", so a name finds the
 * names above and below it (directory/file relations).
 *
 * An update may go under two conditions:
 *
 * - The update is the first of its name, and not in a batch.
 * - No name above or below has an earlier update, in a batch or not.
 *
 * So the names in the hands of the store are disjoint and unrelated. The
 * updates of a ref, and of related names, never overtake each other. "Earlier"
 * means queued earlier, after admission, and not submitted earlier. Only this
 * order puts every new update last at its name.
 *
 * The names of one transaction do not block each other, unless the transaction
 * goes in order. They go together, because the store decides conflicts within a
 * transaction.
 *
 * The names of a prepared session are held here only if it shares rows.
 * Otherwise its lock files block other updates, as the lock files of a foreign
 * process do.
 *
 * If the first update of a name may go, the name is `up`, in the list of its
 * entry. Other names sleep until a time, or are blocked by a related name until
 * the earlier update there is gone. So a blocked update is looked at only when
 * it may go, and a hundred thousand updates of one ref, or below one name, do
 * not slow down the others. A whole transaction whose names are up goes without
 * a look at each name.
 *
 * Loop thread only; nothing blocks. Times are monotonic nanoseconds.
 */
#ifndef SCHEDULER_REF_QUEUE_H
#define SCHEDULER_REF_QUEUE_H

#include "daemon/scheduler/heap.h"
#include "daemon/scheduler/ref_table.h"
#include "daemon/scheduler/table.h"

#define REF_QUEUE_TABLES 256

/* Empty if zero-initialised; the owner sets max_bytes. */
struct ref_queues {
	/* Many hash tables, because a small table grows in little time. */
	struct ref_table tables[REF_QUEUE_TABLES];
	struct heap asleep;
	/* Names with blocked names that may go now. */
	struct ref_queue *releasing;
	/* The directory of the last added name, or NULL. The next name is
	 * likely to lie in the same directory, so the names above are found at
	 * once. */
	struct ref_queue *dir;
	size_t bytes, max_bytes; /* memory of the names */
	uint64_t steps;          /* names looked at so far, for tests */
};

/* Call only after all entries are gone, or when no entry is used again. */
void ref_queue_done(struct ref_queues *ns);

/*
 * Queues U, which is undecided, at its name, in the order of arrival. Returns
 * REFD_OK, or the status for U: BUSY (memory), LIMIT (name too long) or
 * DUPLICATE (the same transaction waits at the name already and does not go in
 * order). If a name of the entry lies above another name of the same entry, the
 * entry goes whole from then on.
 */
enum refd_status ref_queue_add(struct ref_queues *ns, uint64_t repo_key,
    struct txn_update *u, int64_t now_ns);
/* Do the names use more memory than the limit? Then no name is added. */
bool ref_queue_is_full(const struct ref_queues *ns);
/* U was decided or stops waiting. U must not be in a batch. */
void ref_queue_remove(struct ref_queues *ns, struct txn_update *u,
    int64_t now_ns);

uint64_t ref_queue_arrival(const struct txn_update *u);
/* The first update of ENT which may go; a deletion, the last choice, only if
 * MAY_DELETE. NULL: none. */
struct txn_update *ref_queue_first_up(const struct entry *ent, bool may_delete);
/* The first undecided update of ENT which deletes; NULL: none. */
struct txn_update *ref_queue_deletion(struct entry *ent);
/* U is up and goes into a batch. */
void ref_queue_hold(struct ref_queues *ns, struct txn_update *u);
/* All undecided updates of ENT are up and go into a batch. The time does not
 * depend on their number. The updates come back in their order. */
void ref_queue_hold_all(struct entry *ent);
/* The batch of U, a prepared session, is back. The name stays held. */
void ref_queue_keep(struct ref_queues *ns, struct txn_update *u);
/* Is U in a batch, or of a prepared session that keeps its names? */
bool ref_queue_is_held(const struct txn_update *u);
/* The batch of U is back. If U is decided, U leaves the queue, and the name
 * rests until REST_UNTIL_NS. If not, U is first again, but not before
 * u->retry_ns. */
void ref_queue_back(struct ref_queues *ns, struct txn_update *u,
    int64_t rest_until_ns, int64_t now_ns);
/* The batch of U is back. U, decided or not, leaves the queue of its name. */
void ref_queue_let_go(struct ref_queues *ns, struct txn_update *u,
    int64_t now_ns);

/* Wakes some hundred names whose time has come, or which nothing blocks any
 * more. */
void ref_queue_wake(struct ref_queues *ns, int64_t now_ns);
/* When names must be woken: in the past if names are due, or INT64_MAX. */
int64_t ref_queue_next(const struct ref_queues *ns);

#endif
