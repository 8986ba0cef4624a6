/*
 * Which names of a repository are taken, and who waits for them: per name a
 * queue in arrival order, in a tree by "/", so that a name knows what stands
 * above and below it.
 *
 * An update may go when it is the first of its name, no batch holds the
 * name, and no name above or below it (a directory/file relation) is held or
 * has an update that came before. So names in the store's hands are disjoint
 * and unrelated, per ref the order is that of arrival, and related names
 * never overtake each other.
 *
 * One transaction's own names are not in each other's way, unless it goes in
 * order: they go together, and the store says what becomes of them.
 *
 * What a prepared session has locked is not held here: its lock files are in
 * the way of others, as those of a foreign process are.
 *
 * A name whose first update may be tried is `up`: in its entry's list.
 * Others sleep (until a time) or are parked at the name that is in their way
 * (until that one changes), so that nothing that can't go is ever looked at
 * twice for nothing: ten thousand updates of one ref cost what one does.
 *
 * Loop thread only; nothing blocks. Times are monotonic nanoseconds.
 */
#ifndef SCHEDULER_REF_QUEUE_H
#define SCHEDULER_REF_QUEUE_H

#include "daemon/scheduler/heap.h"
#include "daemon/scheduler/table.h"

/* Zero-initialised is empty; max_bytes is set by the owner. */
#define REF_QUEUE_TABLES 256

struct ref_queues {
	/* Each a hash by itself, so that none takes long to grow. */
	struct ref_queue *tables[REF_QUEUE_TABLES];
	struct heap asleep;
	/* That of the last name that came, or NULL: the next one is likely to
	 * be of the same. */
	struct ref_queue *dir;
	size_t bytes, max_bytes; /* what the names themselves take */
};

/* The entries must be gone or never looked at again. */
void ref_queue_done(struct ref_queues *ns);

/*
 * U, undecided, waits at its name, behind those that arrived before it and
 * ahead of those that came later. REFD_OK, or the status it must get: BUSY
 * (memory), LIMIT (name too long), DUPLICATE (its own transaction waits there
 * already, and does not go in order). An entry one of whose names turns out
 * to be above another goes whole from then on.
 */
enum refd_status ref_queue_add(struct ref_queues *ns, uint64_t repo_key,
    struct txn_update *u, int64_t now_ns);
/* Is more memory in use than the limit, so that no name is added? */
bool ref_queue_is_full(const struct ref_queues *ns);
/* U was decided, or waits no more; not while a batch holds it. */
void ref_queue_remove(struct ref_queues *ns, struct txn_update *u,
    int64_t now_ns);

/* The first update of ENT's that may be tried; NULL: none. */
struct txn_update *ref_queue_first_up(const struct entry *ent);
/* U is up. What is in its way (the first update there); NULL: it may go. */
const struct txn_update *ref_queue_in_the_way(const struct txn_update *u);
/* U is up. It is up again when what is in its way has changed. */
void ref_queue_park(struct ref_queues *ns, struct txn_update *u,
    const struct txn_update *in_the_way);
/* U is up and goes into a batch. */
void ref_queue_hold(struct ref_queues *ns, struct txn_update *u);
/* Its batch is back. Decided: it is gone, and nobody gets the name before
 * REST_UNTIL_NS. Undecided: it is first again, not before u->retry_ns. */
void ref_queue_back(struct ref_queues *ns, struct txn_update *u,
    int64_t rest_until_ns, int64_t now_ns);
/* Its batch is back, decided or not, and it waits at its name no more. */
void ref_queue_let_go(struct ref_queues *ns, struct txn_update *u,
    int64_t now_ns);

/* Those whose time has come are up. Returns the next time, or INT64_MAX. */
int64_t ref_queue_wake(struct ref_queues *ns, int64_t now_ns);

#endif
