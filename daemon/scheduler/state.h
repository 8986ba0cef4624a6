/*
 * The inner state of the scheduler, shared by its source files. Loop thread
 * only.
 */
#ifndef SCHEDULER_STATE_H
#define SCHEDULER_STATE_H

#include <string.h>
#include <sys/queue.h>

#include "daemon/scheduler/answer.h"
#include "daemon/scheduler/direct.h"
#include "daemon/scheduler/fairness.h"
#include "daemon/scheduler/gate.h"
#include "daemon/scheduler/quota.h"
#include "daemon/scheduler/ref_queue.h"
#include "daemon/scheduler/scheduler.h"
#include "daemon/scheduler/table.h"
#include "daemon/scheduler/unrecorded.h"

/* on_batch_done.c: the return of one batch. Everything before update NR of
 * slice SLICE is back. */
struct batch_return {
	struct batch *b;
	size_t slice, nr;
	bool is_named, all_recorded; /* of the present slice */
	int64_t rest_until_ns;
	size_t nr_live, nr_later;
	size_t nr_prepared; /* updates of a session */
};

/* Looks for changes by other writers (look.c). */
struct looks {
	LIST_HEAD(, looking) all;
	/* Of the latest small and large look that began to read. */
	uint64_t turn[2];
	uint64_t nr_seen; /* changes recorded so far */
};

/* Of a large answer. */
enum told {
	TOLD_NONE, /* nobody waits for one */
	TOLD_PART, /* the next part comes next */
	TOLD_ALL
};

struct scheduler {
	struct scheduler_config cfg;
	struct store *store;

	struct table table;
	struct waiters waiters;
	struct fairness fairness;
	struct quotas quotas;
	struct ref_queues ref_queues;
	/* of entries that are ADMITTING, DIRECT or WAITING, or that hold
	 * locks */
	struct heap deadlines;
	struct unrecorded unrecorded;
	struct direct direct;
	struct gate gate;
	/* Entries with answers to send, of one part or of several;
	 * next_telling. */
	struct entry *decided, *decided_large;
	/* Three lists by next_asked: questions about ids that the store has,
	 * large answers to send, and requests to pack. */
	struct store_question *asked, *found, *packs;
	struct entry *ending;   /* ending.next */
	struct entry *sessions; /* undecided sessions; session.next */
	/* Two lists of prepared sessions whose clients have no answer yet: with
	 * an answer of one part, and of several parts. */
	struct entry *untold, *untold_large;
	unsigned large_turn; /* of a kind of large answers (decide.c) */

	uint64_t arrivals;
	size_t held_bytes; /* of the requests in the table, and of questions */
	size_t batch_refs; /* the present limit, see on_batch_done.c */
	size_t nr_batches, nr_admitting, nr_lookups; /* in the store's hands */
	struct batch *returning;    /* large batches that come back; next */
	struct batch_return coming; /* of the first of them */
	size_t nr_asks;             /* questions of clients (ask.c) */
	struct looks looks;

	/* The times of the last scheduler_run(): wall clock, monotonic. */
	int64_t wall_ms, turn_ns;
	bool is_draining, is_running;
	struct scheduler_stats stats;
	struct measure measure;
	struct busy repos, clients;
	struct slow slow;

	bool is_paused, is_closed; /* admin.c */
	unsigned nr_pauses;        /* that have ended */
	struct waiter *closers;    /* waiters for the end of a drain */
};

static inline struct quota_memory scheduler_memory(const struct scheduler *e)
{
	return (struct quota_memory){ e->held_bytes, e->cfg.max_waiting_bytes };
}

/* ---- scheduler.c ---- */

/* Gives ENT to admission. ENT comes back to on_admitted(), or to
 * on_batch_done() if the store has applied its batch. */
void scheduler_admit(struct scheduler *e, struct entry *ent);
/* Starts or stops the deadline of ENT. */
void scheduler_time(struct scheduler *e, struct entry *ent, bool timed);

/* ---- batch.c: the updates that go to the store together ---- */

/* May a batch go now? The question makes the batches that are taking locks
 * hurry (store_takes()), so ask only if there is a batch to form. */
bool batch_may_go(const struct scheduler *e);
/*
 * Forms the next batch, which has at least one update, and lends its
 * transactions to the store: they are IN_BATCH, or DECIDED with unrecorded
 * updates. The caller owns the batch. A batch that prepares a session holds
 * only this session. NULL: nothing can go, the store takes no batch, or memory
 * is out.
 */
struct batch *batch_next(struct scheduler *e);
/* Gives the store batches while updates can go and the store takes them. */
void batch_hand_over(struct scheduler *e);
/* Makes a batch of all undecided updates of ENT. The names are not held, and
 * the state of ENT does not change. NULL: memory is out. */
struct batch *batch_of_whole(const struct entry *ent);

/* ---- direct.c: a transaction with its batch, when nothing else is at work
 * ---- */

/* ENT is new. True: the store has ENT and its batch. False: nothing
 * happened. */
bool direct_begin(struct scheduler *e, struct entry *ent, int64_t now_ns);
/* From now on no batch of a DIRECT entry is applied, unless the store has
 * begun. */
void direct_stop(struct scheduler *e);
/* Does the store apply the batch of ENT? */
bool direct_is_applied(const struct scheduler *e, const struct entry *ent);
/* ENT is DIRECT and back, and its batch was applied: ENT is IN_BATCH. */
void direct_applied(struct scheduler *e, struct entry *ent);
/* ENT is DIRECT and back, and its batch was not applied: ENT is ADMITTING,
 * without a batch. */
void direct_refused(struct scheduler *e, struct entry *ent, int64_t now_ns);

/* ---- decide.c: outcomes that the scheduler decides, and answers ---- */

/* Decides one update, which no batch holds. */
void decide(struct scheduler *e, struct txn_update *u, enum refd_status status,
    const char *text, int64_t now_ns);
/* The lock of U was held for too long. No batch holds U. */
void decide_locked(struct scheduler *e, struct txn_update *u, int64_t now_ns);
/* U has just got a status. Updates the counts of the entry. */
void decide_count(struct txn_update *u);
/* Decides all undecided updates of ENT, which the store must not hold, and
 * finishes ENT. If there are many, decide_go_on() does the rest. TEXT is
 * static, or as old as the transaction. */
void decide_end(struct scheduler *e, struct entry *ent, enum refd_status status,
    const char *text, int64_t now_ns);
/* Ends the updates of ENT, in any state, that have not begun. Updates in a
 * batch end if they come back undecided. If an update is recorded, its record
 * stays, and the end of the other updates is recorded, too. A session whose
 * commit is under way goes on. */
void decide_give_up(struct scheduler *e, struct entry *ent,
    enum refd_status status, const char *text, int64_t now_ns);
/* The same as decide_end(), because the waiting time of ENT is over. Updates
 * that found a lock held get LOCKED. All others get DEADLINE, or ABORTED if the
 * transaction is atomic and an update has failed. */
void decide_late(struct scheduler *e, struct entry *ent, int64_t now_ns);
/* Has an update of ENT failed, and is ENT atomic? Then ENT ends: all other
 * updates are aborted. */
bool decide_siblings(struct scheduler *e, struct entry *ent, int64_t now_ns);
/* Decides some updates of ENDING entries. */
void decide_go_on(struct scheduler *e, int64_t now_ns);
/* Moves ENT to DECIDED. ENT has no undecided updates, and the store does not
 * hold ENT. */
void decide_finish(struct scheduler *e, struct entry *ent);
/* Sends the results of ENT, which is DECIDED, to waiter A, and frees A. Large
 * results follow later, in parts. */
void decide_tell(struct scheduler *e, struct entry *ent, struct waiter *a);
/* Sends the next part to the first waiter of ENT. */
void decide_tell_part(struct scheduler *e, struct entry *ent);
/* Answers decided entries, some at a time. Then keeps an entry with unrecorded
 * updates, and frees an entry without. */
void decide_answer_some(struct scheduler *e);
/* Removes ENT from the table and frees its memory. */
void decide_forget(struct scheduler *e, struct entry *ent);

/* ---- on_admitted.c: from admission to the queues of the names ---- */

void on_admitted(struct scheduler *e, struct txn *txn, int64_t now_ns);
/* ENT arrives at repository REPO_KEY, behind all others. False: no memory. */
bool on_admitted_join(struct scheduler *e, struct entry *ent,
    uint64_t repo_key);
/* The store has admitted ENT and applied its batch. */
void on_admitted_directly(struct scheduler *e, struct entry *ent);
/* The store admits ENT, but ENT must not be done any more. */
void on_admitted_give_up(struct scheduler *e, struct entry *ent,
    enum refd_status status, const char *text);
/* The path of the repository now has a different repository. Admits ENT, which
 * is WAITING, again. */
void on_admitted_again(struct scheduler *e, struct entry *ent, int64_t now_ns);
/* Queues some updates of arriving entries. True: more are left. */
bool on_admitted_enqueue(struct scheduler *e, int64_t now_ns);

/* ---- on_batch_done.c: batches back from the store ---- */

void on_batch_done(struct scheduler *e, struct batch *b, int64_t now_ns);
/* Takes some updates of large batches back. */
void on_batch_done_go_on(struct scheduler *e, int64_t now_ns);
/* SLICE is back. The transaction takes the LSN of the record. */
void on_batch_done_lsn(const struct txn_slice *slice);
/* B is back. Its deletions keep no other deletion waiting any more.
 * Repositories that write alone may go again, after a rest. */
void on_batch_done_queues(const struct batch *b, int64_t now_ns);

/* ---- ask.c: questions of clients ---- */

void ask_refuse(const struct refd_request *req, enum refd_status status,
    const char *text, scheduler_answer_fn *fn, void *arg);
/* While the scheduler drains and no transaction is left, questions are refused.
 * True: REQ was refused. */
bool ask_is_too_late(const struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg);
bool ask_is_expired(const struct scheduler *e, const struct refd_txid *txid,
    int64_t now_ns);
/* Does the id claim a birth more than an hour in the future? The journal would
 * have to keep the id until its birth is older than the horizon. */
bool ask_is_from_future(const struct scheduler *e, const struct refd_txid *txid,
    int64_t now_ns);
void ask_pack_admitted(struct scheduler *e, struct txn *txn);
/* Q is back, with its answer. */
void ask_answered(struct scheduler *e, struct store_question *q,
    int64_t now_ns);
/* TXN is new, so the store may find only some of its rows, or rows that are not
 * durable yet. Therefore the questions about its id that the store is looking
 * up are looked up again. */
void ask_note_txn(struct scheduler *e, const struct txn *txn);
/* Sends a part of the first large answer. */
enum told ask_tell_part(struct scheduler *e);

/* ---- look.c ---- */

void look_admitted(struct txn *txn);
/* The store has done a step of LOOK. */
void look_back(struct store_look *look);
/* Goes on with looks. */
void look_run(struct scheduler *e, int64_t now_ns);
/* When look_run() must be called again. */
int64_t look_next(const struct scheduler *e, int64_t now_ns);

/* ---- admin.c ---- */

/* Counts the decided ENT for the metrics. */
void admin_count(struct scheduler *e, const struct entry *ent,
    enum refd_outcome outcome);
/* Batches begin again. */
void admin_end_pause(struct scheduler *e);
/* Answers the waiters of a drain if the drain is complete. */
void admin_look_drained(struct scheduler *e);

/* ---- session.c ---- */

/* ENT is a new session of CLIENT. */
void session_begin(struct scheduler *e, struct entry *ent, void *client);
/* Makes ENT PREPARED. B, the batch that prepared ENT, is kept; NULL if ENT is
 * empty. */
void session_hold(struct scheduler *e, struct entry *ent, struct batch *b,
    int64_t now_ns);
/* U of the batch that prepared a session is back. True: U is prepared. */
bool session_update_prepared(struct scheduler *e, struct txn_update *u,
    int64_t now_ns);
/* U of batch B, which ended a session, is back. */
void session_update_ended(struct scheduler *e, const struct batch *b,
    struct txn_update *u, int64_t now_ns);
/* Ends ENT, which is PREPARED. HOW is BATCH_COMMIT, or BATCH_ABORT with the
 * reason of entry_give_up(). */
void session_end(struct scheduler *e, struct entry *ent,
    enum batch_session how);
/* Ends the prepared sessions that can't be committed any more (replica.h).
 * Returns when to look again. */
int64_t session_end_outdated(struct scheduler *e, int64_t now_ns);
/* Is a commit or abort of the session under way? */
bool session_is_ending(const struct entry *ent);
/* A joins the clients of ENT, which is PREPARED. */
void session_tell(struct scheduler *e, struct entry *ent, struct waiter *a);
/* Tells clients of PREPARED sessions until MAX answers and results are sent,
 * except of large sessions; returns how many are sent. */
size_t session_tell_some(struct scheduler *e, size_t max);
/* Sends a part of the answer to the client of a large PREPARED session. */
enum told session_tell_part(struct scheduler *e);
/* ENT is decided. */
void session_over(struct scheduler *e, struct entry *ent);

/* Was it the lock of PATH that U found held? */
static inline bool txn_update_missed(const struct txn_update *u,
    const char *path)
{
	return u->locked_path != NULL && strcmp(u->locked_path, path) == 0;
}

#endif
