/*
 * The scheduler must never block, so threads of the store do all work on disks.
 * This header is the hand-over between both, and the scheduler knows nothing
 * else of the store.
 *
 * The scheduler gives transactions, batches and questions to the store, which
 * owns them until every item comes back once, in a completion. Several threads
 * work at the same time, so the order may change, but admissions of one
 * repository keep their order.
 *
 * Threads: store_open, _recover, _start, _stop and _free are for one thread,
 * and block. store_admit, _apply, _ask and _reap are for the loop thread, and
 * never block for longer than the mutex of a queue. The loop may sleep while
 * all completion queues are empty, so threads of the store call WAKE when they
 * add something to empty queues. WAKE must not block (it writes to an eventfd).
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"
#include "daemon/store/journal/journal.h"
#include "daemon/store/question.h"
#include "daemon/store/replica.h"
#include "daemon/store/repos/rights.h"
#include "daemon/store/txn.h"

struct store;

/* The findings of recovery, for log, report and `refd recover`. */
#define STORE_FINDING_TABLE(X)                                                 \
	X(REDONE, "redone") /* the ref has its journaled value again */        \
	X(ROLLED_FORWARD, "rolled-forward") /* our lock was left, finished */  \
	X(UNLOCKED, "unlocked") /* our lock was left, nothing decided */       \
	X(LOG_REPAIRED, "log-repaired")                                        \
	X(TABLE_MENDED, "table-mended")                                        \
	X(OBJECTS_RESTORED, "objects-restored")                                \
	X(LEFT, "left")         /* written later by others */                  \
	X(DROPPED, "dropped")   /* name taken, or worktree gone */             \
	X(DEFERRED, "deferred") /* a foreign lock stands; tried again later */ \
	X(REPO_MISSING, "repository-missing") /* records kept */               \
	X(OBJECT_MISSING, "object-missing")   /* an older value, or nothing */ \
	X(OBJECT_LACKING, "object-lacking")   /* the ref has its value */      \
	X(CORRUPT, "corrupt")                 /* malformed; kept aside */      \
	X(FAILED, "failed")

enum store_finding {
#define X(symbol, name) STORE_##symbol,
	STORE_FINDING_TABLE(X)
#undef X
};
enum {
#define X(symbol, name) +1
	STORE_FINDINGS = STORE_FINDING_TABLE(X)
#undef X
};
const char *store_finding_name(enum store_finding finding);
/* A finding, borrowed. */
struct store_found {
	enum store_finding finding;
	const char *repo, *ref; /* REF "": the whole repository */
	const char *text;       /* for people */
	/* The saved file, below the repository; NULL: nothing was saved. */
	const char *evidence;
	bool is_line; /* of a log line alone: REF has its value */
};

/* Events of a running store, for an administrator. */
enum store_event {
	STORE_FS_FAILED, /* PLACE lies on the file system; WHY: error */
	STORE_FS_LET_GO, /* its records are deferred; may be unmounted */
	STORE_FS_OTHER,  /* the repository PLACE is on another mount */
	/* The file PLACE can't be written because of WHY, so nothing is synced.
	 * If WHY is "", the file can be written again. */
	STORE_UNMARKED,
	STORE_REPO_REPLACED,   /* PLACE is another directory than before */
	STORE_OBJECT_LOST,     /* the file PLACE is lost, or unreadable: WHY */
	STORE_REPO_WAITS,      /* its records can't be redone now: WHY */
	STORE_REPO_RECOVERED,  /* its records are redone; served again */
	STORE_REF_RETURNED,    /* in the repository PLACE: WHY (returned.h) */
	STORE_JOURNAL_DAMAGED, /* the state directory PLACE; WHY; once */
	/* The clock has moved on by WHY. But as far as the state directory
	 * PLACE knows, less time has passed. The clock may be wrong, so history
	 * is trimmed slowly. */
	STORE_CLOCK_AHEAD,
	/* The node PLACE: leads; follows WHY, a node; has lost the connection
	 * to refd-group. */
	STORE_NODE_LEADS,
	STORE_NODE_FOLLOWS,
	STORE_NODE_LOST,
	/* A shared row for the repository PLACE waits for WHY. */
	STORE_ROW_WAITS,
	/* Another program had written a ref of the repository PLACE: WHY. */
	STORE_REF_DIVERGED,
	/* A shared row has moved something from the path WHY to PLACE, other
	 * than a repository that comes from aside. */
	STORE_ROW_MOVED
};

struct store_config {
	const struct sys *sys;
	const char *state_dir;    /* absolute */
	const char *const *roots; /* absolute, resolved; at least one */
	size_t nr_roots;
	/* Of the store's own transactions, which no rule concerns. */
	enum refd_durability durability;
	int64_t prepare_max_ns;   /* of a batch; 40 ms */
	int64_t retention_ms;     /* history and ids; 0: for ever */
	uint64_t retention_bytes; /* history; 0: no limit */
	size_t max_open_repos;
	bool adopt; /* accept a journal of a different machine */
	/* No client is served, so the journal may have shared rows. */
	bool is_offline;
	/* Owned by the store from now on, also if store_open() fails. NULL: no
	 * other machine has the rows. */
	struct replica *replica;
	/* Returns why no update is admitted, to be freed, or NULL. Any thread;
	 * may block. The function may be NULL. */
	char *(*refusal)(void *arg);
	void *refusal_arg;
	void (*wake)(void *arg);
	void *wake_arg;
	/* LIST has a line "awaits <uuid of refd/id>" for each repository whose
	 * records must be redone before any write. Called by
	 * store_tell_awaiting(), and by a thread of the store after every
	 * change of the list. May be NULL. */
	void (*awaiting)(void *arg, const char *list);
	void *awaiting_arg;
	/* A finding of deferred redo in the running daemon, told by threads of
	 * the store. May be NULL. */
	void (*found)(void *arg, const struct store_found *found);
	void *found_arg;
	/* Called once per event by a thread of the store, with a WHY that may
	 * be "". May be NULL. */
	void (
	    *event)(enum store_event event, const char *place, const char *why);
};

/* Takes the flock of the state directory, which is made if missing, and opens
 * the journal. *WHY (to be freed) is the reason of a failure: not writable, in
 * use by a different daemon, on a network file system, of a different machine,
 * newer, corrupt, or older than the repositories have seen (-ESTALE). After
 * success *WHY is a warning, or NULL. The strings of CFG are copied. */
int store_open(const struct store_config *cfg, struct store **store,
    char **why);

/* What may change while the store works. */
struct store_settings {
	struct rights_settings
	    rights; /* of transactions admitted from now on */
	int64_t checkpoint_interval_ns;
	/* The time until an answer of mode periodic is durable. */
	int64_t durability_interval_ns;
	/* A repository is packed after so many new loose refs. 0: never. */
	uint64_t pack_refs;
};

/* Takes a copy of SETTINGS, on any thread: before store_start(), and then at
 * any time. -ENOMEM: all old settings stay. */
int store_set(struct store *store, const struct store_settings *settings);

struct store_report {
	void (*found)(void *arg, const struct store_found *found);
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};
/* Call before store_start() and before any answer, because refs may be stale or
 * empty until then. *DEFERRED counts records that wait for a foreign lock or a
 * missing repository. Negative errno: serving would break a promise.
 * -ENOTRECOVERABLE: other machines have the rows, too, and a file system failed
 * to sync, or the repositories are an older copy. */
int store_recover(struct store *store, const struct store_report *report,
    uint64_t *deferred);
/* Why store_recover() failed, as a sentence to be freed, or NULL. The thread of
 * store_recover(). */
char *store_recover_why(struct store *store);

/* The repository with the path REPO in the journal, or with the uuid REPO in
 * its refd/id. -ENOENT: there is none. -ENOTUNIQ: several had the path. *UUIDS,
 * to be freed, names those that were found; or NULL. */
int store_find_known(struct store *store, const char *repo, uint64_t *id,
    char **uuids);
/* Counts the deferred records of the repository ID, or of all (0), after
 * store_recover(). */
int store_count_deferred(struct store *store, uint64_t id, uint64_t *nr);
/* After store_recover(): drops the deferred records of the repository ID,
 * because the repository will not come back. *NR: how many. -EBUSY: the
 * repository lacks updates that other machines have, and this machine would
 * otherwise count as a whole copy, with old refs. */
int store_forget(struct store *store, uint64_t id, uint64_t *nr);

/* Do other machines have the rows of the journal? *LSN: of its last shared
 * row; 0: none. */
bool store_shares_rows(struct store *store, uint64_t *lsn);
/* As journal_joined_ms(). */
uint64_t store_joined_ms(struct store *store);
/* After store_recover(), offline: as journal_join(). */
int store_join(struct store *store, uint64_t lsn, uint64_t joined_ms,
    journal_given_fn *next, void *arg);
/* After store_recover(), offline: the node leaves the others, and its
 * repositories are no longer marked. UUID is that of the journal, with which
 * the node can begin anew (proto/left_log.h). 0; negative errno: the call may
 * be repeated. -EBUSY: rows wait, or a repository lacks refs that other nodes
 * have. */
int store_leave(struct store *store, uint8_t uuid[GROUP_UUID_BYTES]);

/* Call once after store_recover(). */
void store_tell_awaiting(struct store *store);

int store_start(struct store *store);

/* In admission/admissions.c: looks the id up, opens the repository, checks
 * peer, names and objects, makes the objects durable. Afterwards txn->refused,
 * or statuses on single updates, or all still PENDING. */
void store_admit(struct store *store, struct txn *txn);
/* TXN is cancelled or too late, so its admission shall end soon. TXN comes
 * back, admitted or not. This takes longer only during the look-up of the id of
 * TXN, or if a worker has taken TXN and hangs on the disk. */
void store_give_up(struct store *store, struct txn *txn);
/* In pipeline/pipeline.c: locks, commits and publishes B, which comes back
 * decided (batch/apply.h). */
void store_apply(struct store *store, struct batch *b);
/* Can TXN, which was admitted, still commit? (replica.h) */
bool store_may_commit(struct store *store, const struct txn *txn);
/* How many batches the store works on at once. */
size_t store_max_batches(const struct store *store);
/* REFD_JOURNAL_ID_BYTES, which stay the same as long as the store is open. */
const uint8_t *store_journal_id(const struct store *store);
/* The log to which the LSNs of transactions belong (replica_token_log()). Any
 * thread. */
void store_token_log(struct store *store, uint8_t id[REFD_JOURNAL_ID_BYTES]);
/* Would a batch be prepared at once? If not, updates should gather. The
 * question makes the batches that are taking locks hurry, so ask only with a
 * batch to form. WAKE is called when the answer becomes true. */
bool store_takes(struct store *store);

/* Hands Q over. If Q asks about an id, the transaction must not be in flight,
 * because the answer may then contain rows that are not durable yet, or lack
 * rows. So the caller must know all transactions in flight. */
void store_ask(struct store *store, struct store_question *q);
/* What the daemon does, for questions that take long. */
enum store_service {
	STORE_SERVES,
	STORE_PAUSES, /* a pack comes back at once, or after its round */
	STORE_STOPS /* for good: a watch ends at once, too, and other questions
		       * about history are refused after a second */
};
void store_tell_service(struct store *store, enum store_service service);

/* A ref on disk has a different value than history says. */
struct store_look_change {
	const char *name;    /* borrowed from the look */
	const char *target;  /* of a symbolic ref; or NULL */
	struct refd_oid oid; /* the value now; null: no ref */
	bool has_before;     /* not of a symbolic ref */
	struct refd_oid before;
	uint32_t uid; /* the owner of the file */
};

/* A look for changes by writers without refd, step by step (looking/looker.h).
 * Zero at first, except for step, repo and arg. */
struct store_look {
	struct store_question ask; /* first member */
	enum { LOOK_READ, LOOK_COMPARE, LOOK_FREE } step;
	/* A reference of the asker, only with LOOK_READ and LOOK_COMPARE. */
	struct repo *repo;
	/* No refs are known yet, so nothing counts as a change. The asker sets
	 * this before LOOK_READ if history has lost records, and then the known
	 * refs do not count. */
	bool is_first;
	/* Filled in by each step. */
	enum refd_status status;
	char *why; /* owned; may be NULL */
	/* LOOK_READ has found more refs than a small look may have, so REFS is
	 * NULL, and LOOK_READ must be repeated. */
	bool is_large;
	struct seen_refs *refs;
	/* The known refs have the records up to here. An answer of history may
	 * end within a record, but the last answer does not. */
	struct refd_position at;
	uint64_t file_lsn; /* of the file of known refs */
	bool has_news;     /* records changed the known refs */
	bool is_early;     /* the changes are left to the next look */
	struct store_look_change *changes; /* by uid; borrow from the tables */
	size_t nr_changes, changes_size;

	/* For the looker. */
	int64_t since_ns;
	struct store_look *next, *prev;
};
/* Adds the changes of ANS, the answer to a LOG of the repository behind
 * look->at. 0, -ENOMEM, -EFBIG. Does not block. */
int store_look_add(struct store_look *look, const struct refd_answer *ans);
/* Makes LOOK large, before LOOK_READ is repeated. */
void store_look_enlarge(struct store_look *look);
/* REQ is about the repository of LOOK, and no other at the same path. */
void store_look_address(const struct store_look *look,
    struct refd_request *req);
/* Frees all but LOOK and the reference. */
void store_look_done(struct store_look *look);

/* One completion, in which exactly one pointer is set. */
struct store_done {
	struct txn *admitted;
	struct batch *applied;
	struct store_question *answered;
};
/* In completions.c: sets one pointer of DONE, for all batches first, then for
 * admissions, and then for questions. false: nothing is waiting. */
bool store_reap(struct store *store, struct store_done *done);

/* The repository reference of an admitted transaction goes back. */
void store_release(struct store *store, struct repo *repo);
/* Frees TXN, without a repository, on a worker, because freeing very many
 * updates would take too long for the loop. */
void store_discard(struct store *store, struct txn *txn);
/* A number for the scheduler's tables, which is equal for equal
 * repositories. */
uint64_t store_repo_key(const struct repo *repo);
/* Does a batch change one file for all refs of REPO, so that the scheduler must
 * form one batch at a time? */
bool store_writes_alone(const struct repo *repo);
const char *store_repo_path(const struct repo *repo);

#define STORE_HEAD_MAX 136

struct store_stats {
	/* Barriers: the number of transactions that waited, of syncfs calls,
	 * and of fsyncs of single packs. */
	uint64_t batches, flushes, barriers, barrier_syncs, barrier_fsyncs;
	uint64_t barrier_copies;
	uint64_t checkpoints, checkpoint_failures;
	uint64_t wal_bytes, last_lsn, forgotten_lsn, open_repos;
	uint64_t awaiting_repos, awaiting_refs; /* recovery */
	/* File systems that failed to sync, with objects to read back from the
	 * disk. */
	uint64_t suspect_fs;
	uint64_t watching; /* questions that wait */
	/* Packing: refs, and rounds that failed. */
	uint64_t packed_refs, pack_failures;
	uint64_t indexed_lsn, trimmed_lsn;
	bool is_journal_damaged;
	/* The line of refd log --head; "": none yet. */
	char head[STORE_HEAD_MAX];
	/* The last checkpoint: the time of its success (monotonic), its
	 * duration, and the size of the journal's file. */
	int64_t checkpoint_ns, checkpoint_took_ns;
	uint64_t journal_bytes;
	struct replica_state replica;
};
void store_stats(struct store *store, struct store_stats *stats);

/* For how long nothing that is being committed to the journal has come back;
 * 0: nothing is being committed. */
int64_t store_stuck_ns(struct store *store);

/* The stages of a transaction and of upkeep. Work that hangs or is slow keeps
 * threads of one stage. */
#define STORE_STAGE_TABLE(X)                                                   \
	X(LOOKUP, "lookup", 1) /* of ids in the journal, by an admission */    \
	X(ADMISSION, "admission", ADMISSION_WORKERS)                           \
	X(BARRIER, "barrier", BARRIERS_WORKERS)                                \
	X(PREPARE, "prepare",                                                  \
	    PIPELINE_PREPARERS)               /* a batch takes its locks */    \
	X(COMMIT, "commit", PIPELINE_BATCHES) /* after the locks */            \
	X(CHECKPOINT, "checkpoint", 1 + CHECKPOINTER_SYNCS)                    \
	X(PACK, "pack", PACKER_WORKERS)                                        \
	X(LOOK, "look", LOOKER_WORKERS)                                        \
	X(HISTORY, "history", HISTORIAN_WORKERS)
enum store_stage {
#define X(symbol, name, nr_threads) STORE_STAGE_##symbol,
	STORE_STAGE_TABLE(X)
#undef X
	    STORE_STAGES
};
const char *store_stage_name(enum store_stage stage);

struct store_progress {
	int64_t
	    since_ns; /* of the longest work in progress; 0: there is none */
	char path[REFD_PATH_MAX]; /* a repository or directory of the work */
	bool has_more;            /* and other repositories */
	/* The number of threads of the stage, and of threads with work longer
	 * than the limit. */
	size_t nr_threads, nr_stuck;
};
void store_progress(struct store *store, int64_t limit_ns,
    struct store_progress progress[STORE_STAGES]);

/* Returns why the journal failed and could not be brought back, so that the
 * daemon must exit (74), or NULL while all is well. */
const char *store_fatal(struct store *store);

/* Call after everything came back. The store then makes a checkpoint, so that
 * nothing needs replay. */
int store_stop(struct store *store);
void store_free(struct store *store);
/* Returns the descriptor of the lock of the state directory, so that no other
 * store opens the directory before the caller closes the descriptor. */
int store_free_keep_lock(struct store *store);

#endif
