/*
 * A transaction on its way through the daemon, and the batch it travels in.
 *
 * One owner at a time: the connection that decoded it, the scheduler while it
 * waits, the store from a hand-over (store.h) to its completion. Whoever owns
 * it may read and write all of it; nobody else touches it. The answer is
 * allocated with the question: each update has its status and room for the
 * value that was found, so reporting a failure can't fail.
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

struct repo;
struct txn;

/* Why the store gave an update back undecided. */
enum txn_again {
	TXN_AGAIN_NO,
	TXN_AGAIN_LATER,  /* the batch was full; nothing is wrong */
	TXN_AGAIN_ALONE,  /* its repository wants a batch of its own, or there
			     are too many that take long */
	TXN_AGAIN_LOCKED, /* somebody holds the lock */
	TXN_AGAIN_REOPEN  /* the repository at its path is another now */
};

enum txn_object {
	TXN_OBJECT_UNKNOWN, /* there is none, or nobody looked */
	TXN_OBJECT_COMMIT,
	TXN_OBJECT_TAG,  /* an annotated one */
	TXN_OBJECT_OTHER /* a tree, a blob */
};

struct txn_update {
	const struct refd_update *ask; /* in txn->req */
	struct txn *txn;

	/* The answer. PENDING until decided; then never changed again. */
	enum refd_status status;
	bool has_found; /* FOUND: the value that was there */
	struct refd_oid found;
	char *text; /* owned; for people or a detail (detail.h), or NULL */

	enum txn_again again;   /* with PENDING, after a batch */
	char *locked_path;      /* owned; with TXN_AGAIN_LOCKED: what is locked,
				 below the common dir, without ".lock" */
	enum txn_object object; /* what the new value is, by admission */
	bool recorded;          /* its outcome is in the journal */
	/* Of a tag: what it is of in the end; owned. NULL: nobody looked. */
	struct refd_oid *peeled;

	/* Prepared in a session: the ref that is locked, where a symbolic ref
	 * led to it; owned, or NULL. */
	char *final_name;

	/* The scheduler's own. */
	struct txn_update *next_waiting, *prev_waiting;
	int64_t retry_ns;        /* not before (monotonic) */
	int64_t locked_since_ns; /* first TXN_AGAIN_LOCKED, or 0 */
	bool in_batch;           /* undecided, and in the store's hands */
	void *ref_queue;         /* where it waits (scheduler/ref_queue.h) */
};

/* Is it asked that the ref be gone? That takes packed-refs.lock. */
bool txn_update_deletes(const struct txn_update *u);

struct txn_peer {
	uint32_t uid;
	int64_t pid;
	uint32_t *gids; /* owned; the primary group too */
	size_t nr_gids;
};

/* Where its time goes: monotonic moments, and sums over its batches. For the
 * numbers alone; nothing is decided by them. */
struct txn_times {
	int64_t arrived_ns;  /* the scheduler took it */
	int64_t admitted_ns; /* it came back from admission, and the barrier */
	int64_t barrier_ns;  /* how much of that was for its objects */
	int64_t lock_ns, flush_ns, publish_ns;
	int64_t done_ns; /* its last batch was done; 0: it had none */
};

struct txn {
	struct refd_request req;    /* owned */
	struct txn_peer peer;       /* owned */
	struct txn_update *updates; /* owned; one per req.updates */
	size_t nr_updates;
	/* Of those, decided; and how. */
	size_t nr_decided;
	uint32_t nr_of[REFD_STATUSES];
	bool is_laid_out;

	/* Admitted before; the repository at its path was replaced since.
	 * What is decided stays, and its id is not looked up again: the
	 * journal may hold slices of this very transaction. */
	bool readmitted;

	/* Its id was born long after the present. The scheduler's; admission
	 * refuses such an id unless the journal knows it. */
	bool is_from_future;

	/* From admission. */
	struct repo *repo; /* a reference, or NULL */
	/* What a record says of it. A rejection that waits for its record has
	 * let go of it already. */
	uint64_t repo_id, repo_mount; /* 0: none was opened */
	/* What is durable there at the least; DEFAULT: nobody has said. */
	enum refd_durability least;
	struct quota_limits limits; /* of its repository */
	bool replayed;              /* the journal knew the id: the results
					   are those of the first time */
	enum refd_status refused;   /* REFD_OK, or the whole is refused */
	char *why;                  /* owned; with refused */

	/* Highest of its recorded slices; 0: none. After admission the
	 * scheduler's alone: it may answer from here while a rejection is being
	 * recorded, so the store fills in the slice's. */
	uint64_t lsn;

	/* The batch that the store applies at once if it admits the
	 * transaction as it is, into the repository DIRECT_REPO
	 * (store_repo_key()). NULL: the store only admits it. */
	struct batch *direct;
	uint64_t direct_repo;
	/* Set once: by the store, which then applies DIRECT; or by the
	 * scheduler, and then the store only admits. */
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
	/* Nobody waits for it any more: it need not be admitted. Set by
	 * admissions_give_up() alone. */
	atomic_bool is_given_up;

	void *prepared;       /* the store's: a session's locks, which stand
			     between its PREPARE and its COMMIT or ABORT */
	bool rewrites_packed; /* when it is committed: packed-refs too */
	struct txn_times times;
	void *scheduler;         /* the scheduler's own bookkeeping */
	struct txn *next, *prev; /* queues of whoever owns it */
};

/* Takes REQ over (its content is moved out). NULL when out of memory, REQ
 * is then untouched. The updates are only allocated. To lay out very many
 * updates takes too long for the loop, so admission lays them out. */
struct txn *txn_new(struct refd_request *req);
/* Each update is pending, unless that was done before. */
void txn_lay_out(struct txn *txn);
/* The repository reference must have been given back (repo_put). */
void txn_free(struct txn *txn);
/* Gives one update its ok. Once only. Only durability.c calls this function, after
 * everything that the durability mode promises is done. */
void txn_acknowledge(struct txn_update *u);
/* Decides one update otherwise; TEXT is copied and may be NULL. Once only. */
void txn_decide(struct txn_update *u, enum refd_status status,
    const char *text);
void txn_decidef(struct txn_update *u, enum refd_status status, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
/* The same of what git has words for; the arguments that are not there, and
 * those behind them, are NULL. */
void txn_decide_detail(struct txn_update *u, enum refd_status status,
    enum refd_detail_kind kind, const char *a, const char *b, const char *c);
/* What a failed call means to who asked. ERR is negative. */
enum refd_status txn_status_of(int err);
/* Counts again how many are decided, and how: their statuses were set. */
void txn_count(struct txn *txn);
/* What it asked for, but at least what is promised there, or LEAST where nobody
 * has said. */
enum refd_durability txn_durability(const struct txn *txn,
    enum refd_durability least);
enum refd_outcome txn_outcome(const struct txn *txn);

/* A transaction's share of a batch. */
struct txn_slice {
	struct txn *txn;
	struct txn_update **updates; /* owned array; pointers borrowed */
	size_t nr;
	bool to_packed; /* the store's: its new refs go to packed-refs */
	uint64_t lsn;   /* filled in by the store: its record's; 0: none */
};

/*
 * A session's batch holds its one transaction and nothing else. PREPARE
 * takes all its locks: it comes back with every update decided or PENDING
 * with TXN_AGAIN_NO, which are prepared (txn->prepared is set), or, where any
 * must be tried again, with all undecided ones given back and no lock held.
 * COMMIT decides what is prepared. ABORT lets go of the locks and decides
 * nothing. Between them the scheduler's names do not hold the session's refs:
 * its lock files do, and whoever runs into them finds them locked.
 */
enum batch_session {
	BATCH_WHOLE, /* no session: from lock to unlock */
	BATCH_PREPARE,
	BATCH_COMMIT,
	BATCH_ABORT
};

/* Why nothing more was put into a batch. */
#define BATCH_CLOSE_TABLE(X)                                                   \
	X(ALL, "all")         /* nothing else could go */                      \
	X(REFS, "refs")       /* as many refs as a batch may have */           \
	X(SHARES, "shares")   /* each repository had its share of them */      \
	X(WHOLE, "whole")     /* what goes whole did not fit */                \
	X(SESSION, "session") /* it prepares or ends one, which goes alone */  \
	X(MEMORY, "memory")   /* there was none */                             \
	X(TIME, "time")       /* it took too long to lock, others went back */

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
 * What a worker makes durable with one flush. Names of different
 * transactions in it are disjoint and free of directory/file relations, and so
 * are those of any other batch in the store's hands; what symbolic refs lead
 * to, and one transaction's own names among each other, the store sees to. An
 * atomic transaction's slice holds all its updates.
 * Updates that are decided already (a rejection at admission, a deadline) may
 * ride along to be recorded.
 */
struct batch {
	struct txn_slice *slices; /* owned array */
	size_t nr_slices;
	enum batch_session session;
	bool is_prepared; /* the store's: takes no locks, or has them */
	/* Filled in by the store: how long locks were held (monotonic). */
	int64_t locked_ns, unlocked_ns;
	/* And where its time went; DONE is a moment. */
	int64_t lock_ns, flush_ns, publish_ns, done_ns;
	enum batch_close closed;
	struct batch *next;
};

void batch_free(struct batch *b); /* not the transactions */

#endif
