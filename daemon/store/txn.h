/*
 * A transaction on its way through the daemon, and the batch with its updates.
 *
 * A transaction has one owner at a time: the connection that decodes it, then
 * the scheduler, and the store from a hand-over (store.h) to the completion.
 * Only the owner reads and writes the transaction, so a member needs no lock
 * unless its comment names one. The memory for the answer is allocated with the
 * request: every update has a status and room for the found value, so a failure
 * can always be reported.
 */
#ifndef STORE_TXN_H
#define STORE_TXN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/quota_limits.h"
#include "proto/detail.h"
#include "proto/message.h"

struct new_objects;
struct repo;
struct txn;

/* What a replica (replica.h) keeps with a transaction. */
struct replica_txn {
	/* Any thread; does not block. */
	void (*free)(struct replica_txn *kept);
};

/* Why the store gave an update back undecided. */
enum txn_again {
	TXN_AGAIN_NO,
	TXN_AGAIN_LATER, /* the batch was full; nothing is wrong */
	/* The update must be alone in a batch, or too many such batches run. */
	TXN_AGAIN_ALONE,
	TXN_AGAIN_LOCKED, /* a different writer has the lock */
	TXN_AGAIN_REOPEN, /* the path has a different repository now */
	/* The disk has a different value of the ref than the value that all
	 * machines gave the ref (replica.h). */
	TXN_AGAIN_DIVERGED
};

enum txn_object {
	TXN_OBJECT_UNKNOWN, /* missing, or not looked up */
	TXN_OBJECT_COMMIT,
	TXN_OBJECT_TAG,  /* annotated */
	TXN_OBJECT_OTHER /* a tree, a blob */
};

struct txn_update {
	const struct refd_update *ask; /* in txn->req */
	struct txn *txn;

	/* The answer. PENDING until decided, then never changed again, except
	 * by an admission that takes an earlier answer back. */
	enum refd_status status;
	bool has_found; /* FOUND is set: the value before */
	struct refd_oid found;
	char *text; /* owned; for people or a detail (detail.h), or NULL */

	enum txn_again again; /* with PENDING, after a batch */
	/* Owned; with TXN_AGAIN_LOCKED, the locked file below the common dir,
	 * without ".lock". */
	char *locked_path;
	enum txn_object object; /* type of the new value, from admission */
	/* The outcome is in the journal: slice_committed() of commit.c, or
	 * replay() of admissions.c. */
	bool recorded;
	bool is_brief; /* replaced at once: its objects are not looked for */
	/* The peeled object of a tag, owned, or NULL if nobody looked it up. */
	struct refd_oid *peeled;

	/* The ref at the end of a symbolic ref; owned, or NULL: not known.
	 * After a prepare, it is locked. */
	char *final_name;

	/* Only for the scheduler. */
	struct txn_update *next_waiting, *prev_waiting;
	int64_t retry_ns;        /* not before (monotonic) */
	int64_t locked_since_ns; /* first TXN_AGAIN_LOCKED, or 0 */
	/* Goes in a batch undecided: from txn_update_try() until the batch, or
	 * the end of its session, is back. */
	bool in_batch;
	void *ref_queue; /* the queue (scheduler/ref_queue.h) */
};

/* The name of the ref that U locks first. Usually this is the name in the
 * request. But if this machine applies a row of another machine, the symbolic
 * ref in the request may not exist here, so the name is that of the ref at the
 * end (final_name). */
const char *txn_update_place(const struct txn_update *u);
/* U, which is undecided, goes into a batch. */
void txn_update_try(struct txn_update *u);
/* Does U delete the ref, and so take packed-refs.lock? False for a gate,
 * because git itself does the deletion. */
bool txn_update_deletes(const struct txn_update *u);

/* A ref before the transaction of a gate, with a null id for no ref. */
struct txn_before {
	bool is_known;
	struct refd_oid oid;
};

struct txn_peer {
	uint32_t uid;
	int64_t pid;
	uint32_t *gids; /* owned; the primary group too */
	size_t nr_gids;
};

/* Times of the transaction, for metrics and for the age of the check of its
 * objects: monotonic times, and sums over its batches. */
struct txn_times {
	int64_t arrived_ns;  /* taken by the scheduler */
	int64_t checked_ns;  /* since then the check counts (txn_is_fresh()) */
	int64_t admitted_ns; /* back from admission and the barrier */
	int64_t barrier_ns;  /* the time at the barrier */
	int64_t lock_ns, flush_ns, publish_ns;
	int64_t done_ns; /* end of the last batch; 0: no batch */
};

struct txn {
	struct refd_request req;    /* owned */
	struct txn_peer peer;       /* owned */
	struct txn_update *updates; /* owned; one per req.updates */
	size_t nr_updates;
	/* Counts of decided updates, in all and by status. */
	size_t nr_decided;
	uint32_t nr_of[REFD_STATUSES];
	bool is_laid_out;

	/* Admitted again, because the path got a different repository, or
	 * because somebody may have removed objects meanwhile. Decided updates
	 * stay decided. The id is not looked up again, because the journal may
	 * hold slices of this same transaction. */
	bool readmitted;

	/* The id claims a birth far in the future, so admission refuses the id
	 * unless the journal knows it. Set by the scheduler. */
	bool is_from_future;

	/* From admission. */
	struct repo *repo; /* a reference, or NULL */
	/* For the record, also after a rejection has released the
	 * repository. */
	uint64_t repo_id, repo_mount; /* 0: no repository was opened */
	/* The least durability of its repository, which is DEFAULT without a
	 * rule. */
	enum refd_durability least;
	struct quota_limits limits; /* of the repository */
	/* Of a gate, one for each update, owned. COMMITTED: the values that the
	 * daemon has read in phase PREPARED. SEEN: the values of the last
	 * records. NULL: none. */
	struct txn_before *before;
	bool is_looked; /* PREPARED: the values were read */
	/* SEEN: BEFORE has all records up to this LSN. */
	uint64_t seen_lsn;
	/* Owned; every record with a new value contains them. NULL: the objects
	 * are durable already. */
	struct new_objects *objects;
	bool replayed; /* the journal knew the id: results of the first time */
	enum refd_status refused; /* REFD_OK, or all updates are refused */
	char *why;                /* owned; with refused */

	/* The store itself has made the transaction, so no peer has rights that
	 * could be checked. No update goes into a batch alone, and a thread of
	 * the store waits for the batch. */
	bool is_own;
	struct replica_txn *replica; /* owned; NULL: nothing */

	/* For the token: the highest LSN of its recorded slices; 0: none. After
	 * admission only on_batch_done.c of the scheduler writes the member.
	 * The scheduler may answer with this LSN while a rejection is being
	 * recorded, so the store sets only the LSN of the slice. */
	uint64_t lsn;

	/* The batch that the store applies at once if it admits the
	 * transaction as it is, into the repository DIRECT_REPO
	 * (store_repo_key()). NULL: the store only admits it. */
	struct batch *direct;
	uint64_t direct_repo;
	/* Set once, so that only one side goes on with DIRECT: by the store,
	 * which then applies DIRECT, or by the scheduler, and then the store
	 * only admits. */
	atomic_bool direct_taken;

	/* Under the mutex of struct admissions. */
	struct admission_queue *queue; /* NULL: in no queue */
	uint64_t nth;                  /* in order of arrival */
	/* Only for the admission worker that has the transaction. */
	size_t nr_checked; /* updates whose objects were read */
	bool is_looked_up; /* the journal does not know the id */
	/* Under the mutex of struct barriers. */
	bool is_at_barrier;
	struct barrier_waiter *waiter; /* in a batch; NULL: in no batch */
	/* Nobody waits for the transaction, so admission may end. Only
	 * store_give_up() sets this member. */
	atomic_bool is_given_up;

	/* The locks of a prepared session, for the store, until COMMIT or
	 * ABORT. */
	void *prepared;
	bool rewrites_packed; /* the commit writes packed-refs too */
	struct txn_times times;
	void *scheduler;         /* its struct entry, look or question */
	struct txn *next, *prev; /* queue of the owner */
};

/* Takes over the content of REQ. NULL: out of memory, and REQ is unchanged. The
 * updates are only allocated, and admission lays them out, because very many
 * updates would take too long in the loop. */
struct txn *txn_new(struct refd_request *req);
/* Makes every update pending, and does nothing the second time. */
void txn_lay_out(struct txn *txn);
/* The repository reference must have been given back (repo_put). */
void txn_free(struct txn *txn);
/* Gives the update U its `ok`, once. An `ok` is a promise, so only durability.c
 * calls this function, after everything that the durability mode promises is
 * done. */
void txn_acknowledge(struct txn_update *u);
/* Decides the update with any other status, once, and copies TEXT, which may be
 * NULL. */
void txn_decide(struct txn_update *u, enum refd_status status,
    const char *text);
void txn_decidef(struct txn_update *u, enum refd_status status, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
/* As txn_decide(), with a message of git as the text. Arguments that the
 * message lacks at the end are NULL. */
void txn_decide_detail(struct txn_update *u, enum refd_status status,
    enum refd_detail_kind kind, const char *a, const char *b, const char *c);
/* The status for the client after a call failed with the negative ERR. */
enum refd_status txn_status_of(int err);
/* As txn_status_of(), for an ERR that can only become `io`. Both functions
 * count the errors of disks (txn_disk_errors()). */
enum refd_status txn_io(int err);
/* The errors of disks so far, once for each ref or question that failed. A
 * missing or malformed file is none, because any user can make such files. */
uint64_t txn_disk_errors(void);
/* Counts the decided updates again, after their statuses were set directly. */
void txn_count(struct txn *txn);
/* The mode in the request, but at least the mode of the repository, or LEAST
 * without a rule. */
enum refd_durability txn_durability(const struct txn *txn,
    enum refd_durability least);
/* TXN->objects as bytes for the record; NULL: none. */
const uint8_t *txn_objects(const struct txn *txn, size_t *len);
void txn_drop_objects(struct txn *txn);
/* Does the check of the objects of TXN still count? The check counts only for a
 * short time, because git may remove an object afterwards. The time runs from
 * times.checked_ns, which was before the check, so that every wait after the
 * check counts. */
bool txn_is_fresh(const struct txn *txn, int64_t now_ns);
/* The fan-out of the last new value, which a push has probably brought. */
uint8_t txn_fanout(const struct txn *txn);
enum refd_outcome txn_outcome(const struct txn *txn);

/* Does the slice need a pass of its own? For the store. */
enum txn_apart { TXN_APART_NO, TXN_APART_NEEDED, TXN_APART_NOW };

/* The updates of one transaction in a batch. */
struct txn_slice {
	struct txn *txn;
	struct txn_update **updates; /* owned array; pointers borrowed */
	size_t nr;
	/* batch_lay_out() fills in the first NR_WHOLE updates: all pending
	 * updates of a transaction that goes as a whole. */
	size_t nr_whole;
	bool to_packed; /* for the store: new refs go to packed-refs */
	enum txn_apart apart;
	/* Set by commit.c of the store: LSN of the record for a token; 0:
	 * none. */
	uint64_t lsn;
};

/*
 * The batch of a session has one transaction and nothing else. PREPARE takes
 * all locks, and every update comes back decided, or prepared: PENDING with
 * TXN_AGAIN_NO (txn->prepared is set). If an update must be tried again, all
 * undecided updates come back and no lock is held. COMMIT decides the prepared
 * updates, and ABORT releases the locks and decides nothing. In between, other
 * updates find the lock files of the session, so the scheduler does not hold
 * its names, except if the rows are shared.
 */
enum batch_session {
	BATCH_WHOLE, /* no session: from lock to unlock */
	BATCH_PREPARE,
	BATCH_COMMIT,
	BATCH_ABORT,
	BATCH_LOOK /* a gate, phase PREPARED: only reads, takes no locks */
};

/* The reason why a batch was closed. */
#define BATCH_CLOSE_TABLE(X)                                                   \
	X(ALL, "all")         /* nothing else could go */                      \
	X(REFS, "refs")       /* as many refs as a batch may have */           \
	X(SHARES, "shares")   /* every repository had its share */             \
	X(WHOLE, "whole")     /* a whole transaction did not fit */            \
	X(SESSION, "session") /* a session goes alone */                       \
	X(MEMORY, "memory")   /* out of memory */                              \
	X(TIME, "time")       /* locking took too long; some went back */

enum batch_close {
#define X(symbol, name) BATCH_CLOSE_##symbol,
	BATCH_CLOSE_TABLE(X)
#undef X
};
enum {
#define X(symbol, name) +1
	BATCH_CLOSES = BATCH_CLOSE_TABLE(X)
#undef X
};

/*
 * The updates that a worker locks, logs and publishes together. Names of
 * different transactions in it are disjoint and free of directory/file
 * relations, also with all other batches in the store. The store itself handles
 * the targets of symbolic refs, and the names of one transaction among each
 * other. The slice of an atomic transaction has all its updates. Updates that
 * are decided already (a rejection at admission, a deadline) may go along to be
 * recorded.
 */
struct batch {
	struct txn_slice *slices; /* owned array */
	size_t nr_slices;
	enum batch_session session;
	/* For the store: takes no locks, or its first pass has them. */
	bool is_prepared;
	/* Filled in by the store (tell_times() of apply.c): when the first lock
	 * was taken, and when the last one went (monotonic). LOCKED_NS is later
	 * by the time in a log that other machines share. 0: no lock. */
	int64_t locked_ns, unlocked_ns;
	/* Set by the store: the time of the steps, but DONE is a point in
	 * time. */
	int64_t lock_ns, flush_ns, publish_ns, done_ns;
	enum batch_close closed;
	struct batch *next;
};

/* The worker calls this function first, because very many updates would take
 * too long in the loop. */
void batch_lay_out(struct batch *b);
size_t batch_nr_updates(const struct batch *b);
void batch_free(struct batch *b); /* not the transactions */

#endif
