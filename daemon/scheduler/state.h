/*
 * The scheduler's inside, as scheduler.c, ask.c, on_admitted.c,
 * on_batch_done.c, decide.c and session.c share it. Private to them; loop
 * thread only.
 */
#ifndef SCHEDULER_STATE_H
#define SCHEDULER_STATE_H

#include <string.h>
#include <sys/queue.h>

#include "daemon/scheduler/answer.h"
#include "daemon/scheduler/direct.h"
#include "daemon/scheduler/scheduler.h"
#include "daemon/scheduler/ref_queue.h"
#include "daemon/scheduler/unrecorded.h"
#include "daemon/scheduler/quota.h"
#include "daemon/scheduler/table.h"
#include "daemon/scheduler/fairness.h"

struct scheduler {
	struct scheduler_config cfg;
	struct scheduler_store store;

	struct table table;
	struct waiters waiters;
	struct fairness fairness;
	struct quotas quotas;
	struct ref_queues ref_queues;
	struct heap deadlines; /* of entries that are ADMITTING, WAIT, or hold
				  their locks */
	struct unrecorded unrecorded;
	struct direct direct;
	struct entry *decided;  /* to be answered, or in the middle of it */
	struct entry *sessions; /* that are not decided; next_session */
	struct entry *untold;   /* that are prepared, to be answered */

	uint64_t arrivals;
	size_t held_bytes; /* of requests in the table */
	size_t batch_refs; /* the present limit, see on_batch_done.c */
	size_t nr_batches, nr_admitting, nr_lookups; /* in the store's hands */
	LIST_HEAD(, store_history) asks;             /* and these */
	size_t nr_asks;
	struct ask_user *ask_users; /* whose they are */

	int64_t wall_ms, wall_at_ns; /* what scheduler_run was told last */
	bool is_draining, is_hurrying, is_running;
	struct scheduler_stats stats;
	struct measure measure;
	struct busy repos, clients;
	struct slow slow;

	bool is_paused, is_closed; /* admin.c */
	struct waiter *closers;    /* who wait until nothing is left */
};

/* ---- scheduler.c ---- */

/* The next batch for the store, which counts as the store's. NULL: nothing may
 * go, or the store takes none. */
struct batch *scheduler_next_batch(struct scheduler *e);

/* ---- direct.c: a transaction with its batch, when nothing else is at work
 * ---- */

/* ENT is new. True: the store has ENT, with its batch. False: nothing has
 * happened. */
bool direct_begin(struct scheduler *e, struct entry *ent, int64_t now_ns);
/* No batch of a DIRECT entry is applied from now on, unless the store has begun
 * with it. */
void direct_stop(struct scheduler *e);
/* Does the store apply the batch of ENT? */
bool direct_is_applied(const struct scheduler *e, const struct entry *ent);
/* ENT, which is DIRECT, is back, and its batch was applied: ENT is IN_BATCH.
 */
void direct_applied(struct scheduler *e, struct entry *ent);
/* ENT, which is DIRECT, is back, and its batch was not applied: ENT is
 * ADMITTING, without a batch. */
void direct_refused(struct scheduler *e, struct entry *ent, int64_t now_ns);

/* ---- decide.c: what the scheduler decides by itself, and answers ---- */

/* One undecided update that no batch holds. */
void decide(struct scheduler *e, struct txn_update *u, enum refd_status status,
    const char *text, int64_t now_ns);
/* U, which no batch holds, found its lock held for too long. */
void decide_locked(struct scheduler *e, struct txn_update *u, int64_t now_ns);
/* U has just got its status; its entry's counts follow. */
void decide_count(struct txn_update *u);
/* All undecided ones of ENT, which isn't lent. */
void decide_rest(struct scheduler *e, struct entry *ent,
    enum refd_status status, const char *text, int64_t now_ns);
/* They wait no longer. Those that found a lock held get LOCKED, the others
 * DEADLINE, or ABORTED when they are siblings of such a one. */
void decide_late(struct scheduler *e, struct entry *ent, int64_t now_ns);
/* Has an update of ENT failed? An atomic one's siblings are aborted then. */
bool decide_siblings(struct scheduler *e, struct entry *ent, int64_t now_ns);
/* An entry without undecided updates, which isn't lent any more, is DECIDED. */
void decide_finish(struct scheduler *e, struct entry *ent);
/* The results of ENT, which is DECIDED or PREPARED; all of them at once. */
void decide_tell(const struct scheduler *e, const struct entry *ent,
    const struct asked *asked);
/* The same; frees A. */
void decide_tell_waiter(struct scheduler *e, const struct entry *ent,
    struct waiter *a);
/* Answers those that are, and keeps them for their notes or lets them go. */
void decide_answer_all(struct scheduler *e);
/* Out of table and memory. */
void decide_forget(struct scheduler *e, struct entry *ent);

/* ---- on_admitted.c: from admission to the names' queues ---- */

void on_admitted_await(struct scheduler *e, struct entry *ent);
void on_admitted(struct scheduler *e, struct txn *txn, int64_t now_ns);
/* The store has admitted ENT and applied its batch. */
void on_admitted_directly(struct scheduler *e, struct entry *ent);
/* ENT, which the store admits, is not to be done any more. */
void on_admitted_give_up(struct scheduler *e, struct entry *ent,
    enum refd_status status, const char *text);
/* The repository at its path is another: admits ENT, which WAITs, again. */
void on_admitted_again(struct scheduler *e, struct entry *ent, int64_t now_ns);
/* Queues some updates of those that arrived; true: there are more. */
bool on_admitted_enqueue(struct scheduler *e, int64_t now_ns);
/* ENT counts against its deadline; or not any more. */
void on_admitted_time(struct scheduler *e, struct entry *ent, bool timed);

/* ---- on_batch_done.c: what the store gives back ---- */

void on_batch_done(struct scheduler *e, struct batch *b, int64_t now_ns);
/* The number of PART's record, which is back, is its transaction's too. */
void on_batch_done_lsn(const struct txn_slice *slice);
/* The deletions of B, which is back, are in no other deletion's way any more.
 * The updates that wait for them are woken with their names. */
void on_batch_done_deletions(const struct batch *b);

/* ---- ask.c: what a client asks of a transaction by its id ---- */

void ask_refuse(const struct refd_request *req, enum refd_status status,
    const char *text, scheduler_answer_fn *fn, void *arg);
/* Is it a question that nobody stays for? Then it is refused. */
bool ask_is_too_late(const struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg);
bool ask_is_expired(const struct scheduler *e, const struct refd_txid *txid,
    int64_t now_ns);
/* Was the id born more than an hour after the present? The journal would have
 * to keep the id until its birth is older than the horizon. */
bool ask_is_from_future(const struct scheduler *e, const struct refd_txid *txid,
    int64_t now_ns);
void ask_checkpointed(struct scheduler *e, struct store_checkpoint *cp);
void ask_looked_up(struct scheduler *e, struct store_query *q, int64_t now_ns);

/* ---- history.c ---- */

void history_told(struct scheduler *e, struct store_history *ask);
/* Clients were forgotten. */
void history_forget(struct scheduler *e);

/* ---- admin.c ---- */

/* ENT is decided, for the numbers. */
void admin_count(struct scheduler *e, const struct entry *ent,
    enum refd_outcome outcome);
/* Answers those who wait for that. */
void admin_look_drained(struct scheduler *e);

/* ---- session.c ---- */

/* ENT, a session, is new, and CLIENT's. */
void session_begin(struct scheduler *e, struct entry *ent, void *client);
/* ENT is PREPARED. B prepared it and is kept; NULL: it is empty. */
void session_hold(struct scheduler *e, struct entry *ent, struct batch *b,
    int64_t now_ns);
/* The batch that prepared it, or ended it, is back. */
void session_prepared(struct scheduler *e, struct batch *b, int64_t now_ns);
void session_ended(struct scheduler *e, struct batch *b);
/* ENT is PREPARED. HOW is BATCH_COMMIT, or BATCH_ABORT for the reason that
 * entry_give_up() was told. */
void session_end(struct scheduler *e, struct entry *ent,
    enum batch_session how);
/* ENT, in any state but DECIDED, is not to be committed any more, unless that
 * is under way. */
void session_give_up(struct scheduler *e, struct entry *ent,
    enum refd_status status, const char *text);
/* Is it being committed or aborted? */
bool session_is_ending(const struct entry *ent);
/* Tells the clients of those that are PREPARED. */
void session_tell_all(struct scheduler *e);
/* ENT is decided. */
void session_over(struct scheduler *e, struct entry *ent);

static inline bool locked_is_packed_refs(const struct txn_update *u)
{
	return u->locked_path != NULL &&
	    strcmp(u->locked_path, "packed-refs") == 0;
}

#endif
