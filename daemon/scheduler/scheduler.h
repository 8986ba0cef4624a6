/*
 * The scheduler decides when a transaction goes to the store. It has the table
 * of transactions by id, a queue per repository in the order of arrival, the
 * batches and the deadlines. The loop must not block, so the scheduler does no
 * I/O. The caller passes the time.
 *
 * The states of a transaction (table.c has the table of allowed moves):
 *
 *	ADMITTING <-> WAITING <-> IN_BATCH
 *	        \        |  \-> DECIDED
 *	         \-> ENDING -> DECIDED
 *
 * If no other transaction is at work, the batch is formed at once (direct.c).
 * The store then applies it, or only admits the transaction:
 *
 *	ADMITTING -> WAITING -> IN_BATCH -> DIRECT -> IN_BATCH
 *	                                         \-> ADMITTING
 *
 * A session:
 *
 *	... IN_BATCH -> PREPARED -> IN_BATCH -> DECIDED
 *
 * Loop thread only; nothing blocks; nothing logs. scheduler_run() and the
 * submit functions call callbacks. A callback may call the scheduler.
 */
#ifndef SCHEDULER_SCHEDULER_H
#define SCHEDULER_SCHEDULER_H

#include "daemon/scheduler/busy.h"
#include "daemon/scheduler/measure.h"
#include "daemon/scheduler/quota.h"
#include "daemon/scheduler/slow.h"
#include "daemon/store/store.h"

struct scheduler;

/* The updates of a transaction that are answered `io`. */
struct scheduler_io {
	const struct txn *txn;
	size_t nr;
	const char *repo; /* its path */
	/* Of the first of them. WHY is NULL if no reason was kept. */
	const char *ref, *why;
};
/* IO is borrowed for the call, which must not call the scheduler. */
typedef void scheduler_io_fn(void *arg, const struct scheduler_io *io);

struct scheduler_config {
	size_t batch_refs;    /* 1,000 */
	int64_t lock_wait_ns; /* for a foreign lock; 1 s */
	int64_t deadline_ns;  /* if the request names none */
	int64_t session_ns;   /* maximum time of a prepared session */
	int64_t retention_ms; /* how long ids are known */
	/* When this node joined others, in milliseconds since 1970. Only other
	 * machines know ids that were born earlier. 0: the node has joined
	 * none. */
	int64_t joined_ms;
	size_t max_waiting_bytes; /* limit for waiting requests; then BUSY */
	struct quota_config quotas;
	int64_t slow_ns; /* limit of the slow log; 0: off */
	/* Called for each transaction with the answer `io`; may be NULL. */
	scheduler_io_fn *on_io;
	void *io_arg;
};

/* STORE is borrowed. Tests link a double of the functions of STORE. */
struct scheduler *scheduler_new(const struct scheduler_config *cfg,
    struct store *store);
/* Call only when the store holds nothing and no session is prepared. */
void scheduler_free(struct scheduler *e);
/* Limits that may change at run time. They apply to batches formed, sessions
 * prepared and requests received from now on. */
struct scheduler_limits {
	size_t batch_refs;
	int64_t session_ns, slow_ns;
	struct quota_limits of_user;
};
void scheduler_set_limits(struct scheduler *e,
    const struct scheduler_limits *limits);

/* Called once per request with the answer, or once per part of a long answer.
 * In the daemon: conn_answer(), which only queues the answer. ANS is borrowed
 * for the call. ARG belongs to the connection; see
 * scheduler_forget_client(). */
typedef void scheduler_answer_fn(void *arg, const struct refd_answer *ans);

/* Takes over TXN, a transaction or a session. FN gets the answer, at once or
 * later. A second request with the id of a transaction in flight joins the
 * first request. A session belongs to the connection ARG of its latest
 * request. */
void scheduler_submit(struct scheduler *e, struct txn *txn, int64_t now_ns,
    scheduler_answer_fn *fn, void *arg);
void scheduler_query(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
void scheduler_cancel(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
/* FN gets the answer when no update answered so far needs replay. */
void scheduler_checkpoint(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, scheduler_answer_fn *fn, void *arg);
/* Takes over TXN, which has no updates: refd packs its repository, if its peer
 * may write there. FN gets the answer afterwards. */
void scheduler_pack(struct scheduler *e, struct txn *txn,
    scheduler_answer_fn *fn, void *arg);
/* Takes over TXN, which has no updates: refd looks for changes by other writers
 * in its repository, if its peer may write there. FN gets the answer
 * afterwards. */
void scheduler_look(struct scheduler *e, struct txn *txn,
    scheduler_answer_fn *fn, void *arg);
/* Ends a prepared session, or joins the end under way. The answer has the
 * results. For a session that is decided or unknown here, the answer is that of
 * a query. */
void scheduler_commit(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
void scheduler_abort(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
/* Handles a log or a watch request. Takes over the content of REQ, and copies
 * PEER. */
void scheduler_history(struct scheduler *e, struct refd_request *req,
    const struct txn_peer *peer, int64_t now_ns, scheduler_answer_fn *fn,
    void *arg);
/* The connection ARG sends nothing more, so nobody can commit its sessions.
 * Gives the sessions up, except sessions whose commit is under way. The caller
 * then calls scheduler_run(). */
void scheduler_end_sessions(struct scheduler *e, void *arg);
/* The connection ARG is gone. Its answers are dropped, and its sessions end
 * (scheduler_end_sessions()). A transaction without another waiter is aborted,
 * except for the updates that have begun. A transaction of a gate goes on,
 * because git makes its change. The caller then calls scheduler_run(). */
void scheduler_forget_client(struct scheduler *e, void *arg, int64_t now_ns);

/* Takes completions from the store, answers, and forms batches. Call it after
 * the store woke the loop, after submits, and at the time that the last call
 * returned. Returns the time of the next call at the latest (monotonic ns), or
 * INT64_MAX. Call it once before the first submit, because WALL_MS tells which
 * ids are too old. */
int64_t scheduler_run(struct scheduler *e, int64_t now_ns, int64_t wall_ms);

/* Accepts no further transactions (REFD_BUSY). Present transactions
 * are finished, and a prepared session may still be committed. */
void scheduler_drain(struct scheduler *e);
/* Waiting transactions get REFD_BUSY, so that they may be sent again, and
 * sessions get REFD_ABORTED. Batches in the store are finished, because their
 * updates have begun. */
void scheduler_hurry(struct scheduler *e);
/* True if nothing waits, the store holds nothing, and all outcomes are
 * recorded. */
bool scheduler_is_idle(const struct scheduler *e);

struct scheduler_stats {
	uint64_t transactions, committed, partial, rejected, unknown;
	uint64_t refs_ok, refs_failed, batches;
	uint64_t waiting;  /* transactions outside of batches */
	uint64_t in_store; /* transactions in a batch */
	uint64_t prepared; /* sessions that hold their locks */
	/* Sessions so far. */
	uint64_t sessions_prepared, sessions_committed, sessions_aborted;
	uint64_t seen; /* changes by writers who did not tell refd */
};
void scheduler_stats(const struct scheduler *e, struct scheduler_stats *stats);
/* Borrowed until the scheduler is freed. Every call changes the content. */
struct measure *scheduler_measure(struct scheduler *e);
/* All answers so far are sent. For the metrics. */
void scheduler_sent(struct scheduler *e, int64_t now_ns);
const struct busy *scheduler_busy_repos(const struct scheduler *e);
const struct busy *scheduler_busy_clients(const struct scheduler *e);
struct slow *scheduler_slow(struct scheduler *e);

/* ---- for an administrator (admin.c); call scheduler_run() afterwards ---- */

/* Starts no further batches, except to end sessions. A transaction whose
 * deadline passes meanwhile gets BUSY. */
void scheduler_pause(struct scheduler *e);
/* Accepts nothing new. FN gets the answer when all transactions are
 * finished. */
void scheduler_close(struct scheduler *e, const struct refd_request *req,
    scheduler_answer_fn *fn, void *arg);
/* Ends pause and close. */
void scheduler_resume(struct scheduler *e);
bool scheduler_is_paused(const struct scheduler *e);
bool scheduler_is_closed(const struct scheduler *e);

enum scheduler_lock_kind {
	SCHEDULER_LOCK_WAITS, /* of a different program */
	SCHEDULER_LOCK_HELD   /* of a prepared session */
};
/* Borrowed for the call. */
struct scheduler_lock {
	enum scheduler_lock_kind kind;
	/* PATH below the repository, without ".lock" */
	const char *repo, *path;
	int64_t age_ns;
	const struct refd_txid *txid;
	uint32_t uid;
	int64_t pid;
};
typedef void scheduler_lock_fn(void *arg, const struct scheduler_lock *lock);
/* Further locks are left out. */
#define SCHEDULER_LOCKS_MAX 1000
void scheduler_locks(const struct scheduler *e, int64_t now_ns,
    scheduler_lock_fn *fn, void *arg);

#endif
