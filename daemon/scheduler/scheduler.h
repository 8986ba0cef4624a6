/*
 * The scheduler: which transaction goes when. Tables of transactions by id,
 * a queue per repository in arrival order, batches, deadlines. No disk, no
 * sockets, no clock of its own: it is told the time.
 *
 * A transaction's states (scheduler.c has the table of allowed moves):
 *
 *	ADMITTING <-> WAITING <-> IN_BATCH
 *	                 \-> DECIDED
 *
 * or, where no other transaction is at work:
 *
 *	ADMITTING -> DIRECT -> IN_BATCH
 *
 * and a session's:
 *
 *	... IN_BATCH -> PREPARED -> IN_BATCH -> DECIDED
 *
 * Loop thread only; nothing blocks; nothing logs. Callbacks are called from
 * scheduler_run() and from the submit functions, and may call back in.
 */
#ifndef SCHEDULER_SCHEDULER_H
#define SCHEDULER_SCHEDULER_H

#include "daemon/scheduler/busy.h"
#include "daemon/scheduler/measure.h"
#include "daemon/scheduler/quota.h"
#include "daemon/scheduler/slow.h"
#include "daemon/store/store.h"

struct scheduler;

struct scheduler_config {
	size_t batch_refs;        /* 1,000 */
	int64_t lock_wait_ns;     /* a foreign lock, where the client names
				     no time; 1 s */
	int64_t deadline_ns;      /* for requests that name none */
	int64_t session_ns;       /* for how long one may stay prepared */
	int64_t retention_ms;     /* ids are known for so long */
	size_t max_waiting_bytes; /* of requests held; then BUSY */
	struct quota_config quotas;
	int64_t slow_ns; /* what takes longer is slow; 0: nothing */
};

/* What the scheduler needs of the store, so that tests can stand in for it. */
struct scheduler_store {
	void *ctx;
	void (*admit)(void *ctx, struct txn *txn);
	void (*give_up)(void *ctx, struct txn *txn); /* store_give_up() */
	void (*apply)(void *ctx, struct batch *b);
	bool (*takes)(void *ctx); /* store_takes() */
	void (*lookup)(void *ctx, struct store_query *query);
	void (*history)(void *ctx, struct store_history *ask);
	void (*history_stop)(void *ctx);
	void (*checkpoint)(void *ctx, struct store_checkpoint *cp);
	bool (*reap)(void *ctx, struct store_done *done);
	void (*release)(void *ctx, struct repo *repo);
	void (*discard)(void *ctx, struct txn *txn);
	uint64_t (*repo_key)(const struct repo *repo);
	const char *(*repo_path)(const struct repo *repo);
	size_t max_batches;                     /* store_max_batches() */
	uint8_t journal[REFD_JOURNAL_ID_BYTES]; /* its id: of every LSN */
};

struct scheduler *scheduler_new(const struct scheduler_config *cfg,
    const struct scheduler_store *store);
/* Nothing may be in the store's hands, and no session prepared. */
void scheduler_free(struct scheduler *e);
/* What may change while it runs: of batches that are formed, sessions that are
 * prepared, and requests that come from now on. */
struct scheduler_limits {
	size_t batch_refs;
	int64_t session_ns, slow_ns;
	struct quota_limits of_user;
};
void scheduler_set_limits(struct scheduler *e,
    const struct scheduler_limits *limits);

/* Called once per request with its answer, which is borrowed for the call.
 * ARG is the connection's; see scheduler_forget_client. */
typedef void scheduler_answer_fn(void *arg, const struct refd_answer *ans);

/* Takes TXN over, a transaction or a session. The answer comes through FN, at
 * once or later. A second one with the id of one in flight joins it. A session
 * is ARG's connection's; of one that was joined, of the last to do so. */
void scheduler_submit(struct scheduler *e, struct txn *txn, int64_t now_ns,
    scheduler_answer_fn *fn, void *arg);
void scheduler_query(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
void scheduler_cancel(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
/* Answered once nothing that was answered before needs replay. */
void scheduler_checkpoint(struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg);
/* Ends a session that is prepared, or whose end is under way. Answered with
 * the results; of one that is decided or unknown here as a query is. */
void scheduler_commit(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
void scheduler_abort(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
/* A log or a watch; takes REQ's content over, and copies PEER. */
void scheduler_history(struct scheduler *e, struct refd_request *req,
    const struct txn_peer *peer, int64_t now_ns, scheduler_answer_fn *fn,
    void *arg);
/* ARG says no more: nobody can commit its sessions, so they are given up, but
 * for those that are being committed. scheduler_run is wanted then. */
void scheduler_end_sessions(struct scheduler *e, void *arg);
/* ARG's connection is gone: its answers are dropped, its transactions go on
 * (they may be in the journal already; it can ask by id). Those that no
 * batch has taken yet go on too: the client may only be reconnecting. And
 * scheduler_end_sessions(). */
void scheduler_forget_client(struct scheduler *e, void *arg);

/* Takes completions, answers, forms batches. Call when the store woke the
 * loop, after submits, and at the time it returned last. Returns when it
 * wants to be called again at the latest (monotonic ns), or INT64_MAX. To be
 * called once before the first submit: WALL_MS tells which ids are too old. */
int64_t scheduler_run(struct scheduler *e, int64_t now_ns, int64_t wall_ms);

/* No further transactions (REFD_BUSY); what is there is finished, and a
 * session that is prepared may still be committed. */
void scheduler_drain(struct scheduler *e);
/* Everything waiting gets REFD_ABORTED, and so does what is prepared; batches
 * in the store are awaited. */
void scheduler_hurry(struct scheduler *e);
/* Nothing waits, nothing is in the store's hands, all is recorded. */
bool scheduler_is_idle(const struct scheduler *e);

struct scheduler_stats {
	uint64_t transactions, committed, partial, rejected, unknown;
	uint64_t refs_ok, refs_failed, batches;
	uint64_t waiting;  /* transactions that no batch has */
	uint64_t in_store; /* and those that one has */
	uint64_t prepared; /* and those that hold their locks */
	/* Sessions: how many came so far, and how they were ended. */
	uint64_t sessions_prepared, sessions_committed, sessions_aborted;
	uint64_t batch_refs_max;
};
void scheduler_stats(const struct scheduler *e, struct scheduler_stats *stats);
/* Borrowed until the scheduler is freed; changes with every call. */
struct measure *scheduler_measure(struct scheduler *e);
/* What was answered is sent. For the numbers. */
void scheduler_sent(struct scheduler *e, int64_t now_ns);
const struct busy *scheduler_busy_repos(const struct scheduler *e);
const struct busy *scheduler_busy_clients(const struct scheduler *e);
struct slow *scheduler_slow(struct scheduler *e);

/* ---- for an administrator (admin.c); then scheduler_run is wanted ---- */

/* No further batches but those that end sessions; whose deadline passes
 * meanwhile is BUSY. */
void scheduler_pause(struct scheduler *e);
/* Nothing new is taken. Answered when nothing is left of what was. */
void scheduler_close(struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg);
/* Neither of the two any more. */
void scheduler_resume(struct scheduler *e);
bool scheduler_is_paused(const struct scheduler *e);
bool scheduler_is_closed(const struct scheduler *e);

enum scheduler_lock_kind {
	SCHEDULER_LOCK_WAITS, /* for somebody else's */
	SCHEDULER_LOCK_HELD   /* by a session */
};
/* Borrowed for the call. */
struct scheduler_lock {
	enum scheduler_lock_kind kind;
	const char *repo, *path; /* PATH below it, without ".lock" */
	int64_t age_ns;
	const struct refd_txid *txid;
	uint32_t uid;
	int64_t pid;
};
typedef void scheduler_lock_fn(void *arg, const struct scheduler_lock *lock);
/* More are not told. */
#define SCHEDULER_LOCKS_MAX 1000
void scheduler_locks(const struct scheduler *e, int64_t now_ns,
    scheduler_lock_fn *fn, void *arg);

#endif
