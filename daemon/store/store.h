/*
 * The hand-over between the scheduler, which must never block, and the threads
 * that do the disk's work: all that the scheduler knows of the store.
 *
 * The scheduler gives transactions, batches and look-ups; each comes back once,
 * in a completion. Between the two the store owns it. Given in any order,
 * they come back in any order, but admissions of one repository keep theirs.
 *
 * Threads: store_open, _recover, _start, _stop and _free from one thread,
 * blocking. store_admit, _apply, _lookup, _checkpoint and _reap never block
 * for longer than a queue's mutex and are for the loop thread. WAKE is called
 * from the store's threads whenever something was added to an empty
 * completion queue; it must be async-safe (write to an eventfd).
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/base/sys.h"
#include "daemon/store/repos/rights.h"
#include "daemon/store/txn.h"

struct store;

/* What recovery found and did, for log, report and `refd recover`. */
#define STORE_FINDING_TABLE(X)                                                 \
	X(REDONE, "redone") /* the ref has its journaled value again */        \
	X(ROLLED_FORWARD, "rolled-forward") /* our lock stood: finished */     \
	X(UNLOCKED, "unlocked") /* our lock stood, nothing was decided */      \
	X(LOG_REPAIRED, "log-repaired")                                        \
	X(LEFT, "left")       /* somebody wrote it later */                    \
	X(DROPPED, "dropped") /* its name is taken, its worktree gone */       \
	X(PARKED, "parked")   /* a foreign lock stands; tried again later */   \
	X(REPO_MISSING, "repository-missing") /* records kept */               \
	X(OBJECT_MISSING, "object-missing")   /* an older value, or nothing */ \
	X(CORRUPT, "corrupt") /* malformed; kept aside, and away */            \
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
/* One of them, borrowed. */
struct store_found {
	enum store_finding finding;
	const char *repo, *ref; /* REF "": all of it */
	const char *text;       /* for people */
	/* What stood there, below the repository; NULL: nothing is kept. */
	const char *evidence;
};

/* What a store at work tells an administrator. */
enum store_event {
	STORE_FS_FAILED,   /* to sync; PLACE lies on it, WHY is the error */
	STORE_FS_LET_GO,   /* and can be unmounted: its records are aside */
	STORE_FS_OTHER,    /* the repository PLACE is on another mount */
	STORE_UNMARKED,    /* the file PLACE can't be written for WHY, so that
				nothing is synced; "": it can again */
	STORE_OBJECT_LOST, /* or nobody can tell: the file PLACE; WHY */
	STORE_REPO_WAITS,  /* its records can't be redone now: WHY */
	STORE_REPO_RECOVERED, /* they are; it is served again */
	STORE_JOURNAL_DAMAGED /* the state directory PLACE; WHY; once */
};

struct store_config {
	const struct sys *sys;
	const char *state_dir;    /* absolute */
	const char *const *roots; /* absolute, resolved; at least one */
	size_t nr_roots;
	enum refd_durability durability; /* where no rule says other */
	int64_t checkpoint_interval_ns;
	/* What was answered in mode periodic lasts after so long. */
	int64_t durability_interval_ns;
	int64_t prepare_max_ns;   /* of a batch; 10 ms */
	int64_t retention_ms;     /* history and ids; 0: for ever */
	uint64_t retention_bytes; /* history; 0: no limit */
	size_t max_open_repos;
	bool adopt; /* a journal of another machine is this one's now */
	void (*wake)(void *arg);
	void *wake_arg;
	/* LIST: a line "awaits <uuid of refd/id>" for each repository that
	 * must not be written before its records are redone. Called by
	 * store_tell_awaiting(), and from a thread of the store's whenever
	 * the list has changed. May be NULL. */
	void (*awaiting)(void *arg, const char *list);
	void *awaiting_arg;
	/* What is parked, and redone, while the daemon runs. Called by threads
	 * of the store's. May be NULL. */
	void (*found)(void *arg, const struct store_found *found);
	void *found_arg;
	/* Once for each thing that happens, from a thread of the store's. WHY
	 * may be "". May be NULL. */
	void (
	    *event)(enum store_event event, const char *place, const char *why);
};

/* Takes the state directory's flock, makes it if need be, opens the journal.
 * *WHY (to be freed) is a sentence: not writable, in use by another daemon,
 * on a network file system, another machine's, newer, corrupt, less than the
 * repositories have seen of it (-ESTALE). After success it is a warning, or
 * NULL. CFG's strings are copied. */
int store_open(const struct store_config *cfg, struct store **store,
    char **why);

/* What may change while it works: any thread, at any time. Rules are copied;
 * those of before are forgotten. DURABILITY is of transactions that are
 * admitted from now on. -ENOMEM: all is as it was. */
int store_set_rules(struct store *store, enum refd_durability durability,
    const struct rights_rule *rules, size_t nr);
/* Prefixes of refs that nobody may push to, nor write through the store but
 * root and the daemon's own user. The same. */
int store_set_reserved(struct store *store, const char *const *prefixes,
    size_t nr);
void store_set_intervals(struct store *store, int64_t checkpoint_ns,
    int64_t durability_ns);

struct store_report {
	void (*found)(void *arg, const struct store_found *found);
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};
/* Before store_start, and before anything is answered. *PARKED counts
 * records that wait for a foreign lock or a missing repository. Negative
 * errno: serving would break a promise. */
int store_recover(struct store *store, const struct store_report *report,
    uint64_t *parked);
/* A sentence, to be freed, if a damaged record was the reason, or NULL. */
char *store_damage(struct store *store);

/* After it: drops what is kept of a repository that will not come back, by
 * the path the journal knows or the uuid in its refd/id. *NR rows. -ENOENT:
 * the journal knows no such repository. */
int store_forget(struct store *store, const char *repo, uint64_t *nr);
/* After it, once. */
void store_tell_awaiting(struct store *store);

int store_start(struct store *store);

/* Looks the id up, opens the repository, checks peer, names and objects,
 * makes the objects durable. Afterwards txn->refused, or statuses on single
 * updates, or all still PENDING. */
void store_admit(struct store *store, struct txn *txn);
/* TXN, which is being admitted, comes back as soon as that can be, admitted or
 * as it was: cancelled, or too late. Only a worker that the disk keeps, and
 * that has just this one in hand, makes it wait; and the look-up of its id. */
void store_give_up(struct store *store, struct txn *txn);
void store_apply(struct store *store, struct batch *b);
/* How many batches the store works on at once. */
size_t store_max_batches(const struct store *store);
/* REFD_JOURNAL_ID_BYTES; the same as long as the store is open. */
const uint8_t *store_journal_id(const struct store *store);
/* Would one be prepared at once? Where not, what there is had better gather:
 * WAKE is called when it would. */
bool store_takes(struct store *store);

struct store_query {
	struct refd_txid txid;
	uint32_t uid;
	bool any_uid; /* root may ask for anybody's */
	/* Filled in. */
	bool found;
	bool failed;               /* the journal could not be read */
	struct refd_answer answer; /* RESULTS when found; owned */
	void *arg;                 /* the asker's */
	struct store_query *next;
};
void store_lookup(struct store *store, struct store_query *query);

/* A question about history, a LOG or a WATCH. */
struct store_history {
	struct refd_request req;   /* owned */
	struct txn_peer peer;      /* owned */
	const void *client;        /* whose connection; compared only */
	int64_t deadline_ns;       /* of a WATCH: monotonic */
	atomic_bool is_dropped;    /* nobody waits for it any more: it may come
				    back early. Set by the scheduler */
	struct refd_answer answer; /* filled in: RECORDS or REFUSED; owned */
	void *arg;                 /* the asker's */
	uint64_t repo;             /* the historian's: which one it is about */
	LIST_ENTRY(store_history) in_scheduler; /* the scheduler's own */
	struct store_history *next, *prev;
};
/* Takes REQ's and PEER's content over; NULL when out of memory, then it does
 * not. */
struct store_history *store_history_new(struct refd_request *req,
    struct txn_peer *peer);
void store_history_free(struct store_history *ask);
void store_history(struct store *store, struct store_history *ask);
/* Those that wait come back now, and so does whatever comes. */
void store_history_stop(struct store *store);

/* That nothing of what came back before needs replay. */
struct store_checkpoint {
	uint64_t lsn;            /* filled in: up to here */
	enum refd_status status; /* filled in: OK, IO */
	char *why;               /* filled in, owned: when it is not OK */
	void *arg;               /* the asker's */
	struct store_checkpoint *next;
};
void store_checkpoint(struct store *store, struct store_checkpoint *cp);

/* One thing done. Exactly one pointer is set. */
struct store_done {
	struct txn *admitted;
	struct batch *applied;
	struct store_query *answered;
	struct store_checkpoint *checkpointed;
	struct store_history *told;
};
/* false: nothing is waiting. */
bool store_reap(struct store *store, struct store_done *done);

/* The repository reference of an admitted transaction goes back. */
void store_release(struct store *store, struct repo *repo);
/* Frees TXN, whose repository went back; for one of very many updates that
 * takes longer than the loop has. */
void store_discard(struct store *store, struct txn *txn);
/* For the scheduler's tables: a number per repository, equal for equal. */
uint64_t store_repo_key(const struct repo *repo);
const char *store_repo_path(const struct repo *repo);

struct store_stats {
	/* Barriers: transactions that waited; for how many syncfs, and fsyncs
	 * of single packs. */
	uint64_t batches, flushes, barriers, barrier_syncs, barrier_fsyncs;
	uint64_t checkpoints, checkpoint_failures;
	uint64_t wal_bytes, last_lsn, forgotten_lsn, open_repos;
	uint64_t awaiting_repos, awaiting_refs; /* recovery */
	/* File systems that failed to sync, and whose objects are read from
	 * the disk before they are believed. */
	uint64_t suspect_fs;
	uint64_t watching; /* questions that wait */
	uint64_t indexed_lsn, trimmed_lsn;
	/* The last checkpoint, whether it did anything or not: when it was
	 * well (monotonic), how long it took, how large the journal's file was
	 * then. */
	int64_t checkpoint_ns, checkpoint_took_ns;
	uint64_t journal_bytes;
};
void store_stats(struct store *store, struct store_stats *stats);

/* For how long nothing that is being committed to the journal has come back;
 * 0: nothing is being committed. */
int64_t store_stuck_ns(struct store *store);

/* What the threads work at, by the stages of a transaction and of upkeep. What
 * hangs or is slow keeps threads of one stage. */
#define STORE_STAGE_TABLE(X)                                                   \
	X(LOOKUP, "lookup", 1) /* of ids in the journal, by an admission */    \
	X(ADMISSION, "admission", ADMISSION_WORKERS)                           \
	X(BARRIER, "barrier", BARRIERS_WORKERS)                                \
	X(PREPARE, "prepare",                                                  \
	    PIPELINE_PREPARERS)               /* a batch takes its locks */    \
	X(COMMIT, "commit", PIPELINE_BATCHES) /* and from then on */           \
	X(CHECKPOINT, "checkpoint", 1 + CHECKPOINTER_SYNCS)                    \
	X(HISTORY, "history", 1)
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
	char path[REFD_PATH_MAX]; /* a repository or directory it is at */
	bool has_more;            /* other repositories, too */
	/* The threads that the stage has; those longer at work than the
	 * limit. */
	size_t nr_threads, nr_stuck;
};
void store_progress(struct store *store, int64_t limit_ns,
    struct store_progress progress[STORE_STAGES]);

/* The journal failed and could not be brought back: the daemon must exit
 * (74). NULL while all is well. */
const char *store_fatal(struct store *store);

/* Everything handed over must have come back. Checkpoints, so that nothing
 * is left to replay. */
int store_stop(struct store *store);
void store_free(struct store *store);

#endif
