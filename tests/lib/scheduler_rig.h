/*
 * A scheduler with a store that a test controls, and a clock that advances only
 * on command.
 *
 * The store keeps batches and transactions until the test gives them back. It
 * checks the contract between scheduler and store for every batch:
 * - The names of all batches in its hands are disjoint and unrelated. Related
 *   names of the same transaction are together.
 * - An atomic transaction is whole. A transaction is in one batch at a time,
 *   and so are the deletions of a repository.
 * - Nothing overtakes an earlier update of the same or a related name.
 * - A session is alone in its batches, and is ended once after it was prepared,
 *   with all its updates.
 * The rig also checks that no request is answered twice.
 */
#ifndef TESTS_LIB_SCHEDULER_RIG_H
#define TESTS_LIB_SCHEDULER_RIG_H

#include "daemon/scheduler/scheduler.h"

#define RIG_MS 1000000LL
/* The repository with this number writes alone (store_writes_alone()). */
#define RIG_ALONE 77

struct rig_client {
	int unused;
};

/* A request and its answer. */
struct rig_ask {
	struct rig_client *client;
	uint64_t id;       /* of the submitted transaction */
	struct txn *txn;   /* while REPO is set, or during admission */
	struct repo *repo; /* from admission until the answer is forgotten */
	bool is_forgotten;
	bool is_prepared; /* a session whose locks the store has */
	unsigned nr_answers, nr_parts;
	enum refd_answer_kind kind;
	enum refd_outcome outcome;
	enum refd_status refused;
	enum refd_status *statuses;
	size_t nr;
	char *text; /* the first text */
	bool rewrites_packed;
	uint32_t retry_after_ms;
};

struct rig_config {
	size_t committers, batch_refs, max_bytes;
	int64_t joined_ms;
	struct quota_config quotas;
	struct quota_limits of_repo;
	bool large; /* skips the checks with quadratic cost */
};

/* Whether the store would begin a batch at once. */
extern bool rig_takes;
/* In a group: does this node still lead in the same epoch? */
extern bool rig_may_commit;
/* Does the store keep transactions whose objects it checks once more? If not,
 * they come back at once. */
extern bool rig_keeps_checks;
/* How often the store was asked for this. */
extern unsigned rig_nr_asked;
extern struct scheduler *rig_scheduler;
extern int64_t rig_now, rig_wall_ms, rig_next;
extern struct batch *rig_batches; /* in the store, oldest first */
/* The most updates that the scheduler itself put into a batch. */
extern size_t rig_most_taken;
extern struct txn *rig_admissions; /* in the store, oldest first */
extern struct store_question *rig_lookups;
/* Gets all other questions, which rig_question_back() gives back. */
extern void (*rig_on_question)(struct store_question *q);
void rig_question_back(struct store_question *q);
extern size_t rig_nr_stops; /* STORE_STOPS */
extern uint64_t rig_nr_batches, rig_nr_released;
/* The last updates that were answered `io`: "NR REF: WHY". */
extern char rig_io[256];
/* Called in the callback of an answer; may be NULL. */
extern void (*rig_on_answer)(struct rig_ask *ask);

void rig_setup(const struct rig_config *cfg);
/* Fixtures. One committer, or three, and batches of ten refs; or two committers
 * and batches of a hundred, for tests that do not depend on these numbers. */
void rig_setup_one_committer(void);
void rig_setup_committers(void);
void rig_setup_roomy(void);
/* Gives back everything that the store still has. Fails if a reference to a
 * repository was lost, or a request has no answer. If a test has freed
 * rig_scheduler and set it to NULL, requests are not checked. */
void rig_teardown(void);

/* A transaction to submit; zeroes mean one update of repository 0 by uid 0. */
struct rig_txn {
	uint64_t id; /* 0: the next unused id */
	uint32_t uid;
	unsigned repo;
	bool atomic, session, push, deletes;
	uint32_t deadline_ms;
	/* The value plus 1; 0: the client sends no value. */
	uint32_t ref_lock_timeout_ms, packed_refs_timeout_ms;
	int64_t born_ms; /* relative to now */
	size_t bytes;
	const char *const *names;
	size_t nr;
	char fill; /* of the new oids; changes the content */
	enum refd_gate gate;
	char gate_key; /* of a transaction, see make_txn() */
	struct rig_client *client;
};
/* .names and .nr of an initialiser. */
#define RIG_NAMES(...)                                                         \
	.names = (const char *const[]){ __VA_ARGS__ },                         \
	.nr = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)

struct rig_ask *rig_submit(const struct rig_txn *t);
struct rig_ask *rig_query(uint32_t uid, uint64_t id, int64_t born_ms);
struct rig_ask *rig_query_of(struct rig_client *client, uint32_t uid,
    uint64_t id);
struct rig_ask *rig_cancel(uint32_t uid, uint64_t id);
struct rig_ask *rig_commit(uint32_t uid, uint64_t id);
struct rig_ask *rig_abort(uint32_t uid, uint64_t id);
/* The id of the last submitted transaction. */
uint64_t rig_last_id(void);
void rig_forget(struct rig_client *client);

void rig_run(void);
void rig_pass(int64_t ns); /* advances the clock, then runs */

/* The store gives transactions and batches back. */
void rig_admit(struct txn *txn);     /* unchanged; removes it from the list */
void rig_admit_one(struct txn *txn); /* with a repository */
void rig_admit_all(void);            /* with a repository; then run */
/* With a repository, and the batch goes to the store. Returns false, without
 * any change, if TXN can't go the direct way. The other three functions take no
 * batch. */
bool rig_admit_directly(struct txn *txn);
/* The path of TXN, which the store checks once more, has the repository KEY
 * now. */
void rig_replace_repo(struct txn *txn, uint64_t key);
/* Refuses TXN, with a repository unless STATUS is REFD_NOREPO; then runs. */
void rig_refuse(struct txn *txn, enum refd_status status, const char *why);
/* Decides all pending updates as ok; or prepares or ends a session. */
void rig_apply(struct batch *w);
void rig_back(struct batch *w); /* unchanged */
void rig_back_all(void);        /* rig_apply, rig_back, run */
/* Checks that the waiting batch is this step of a session with NR refs, and
 * alone; then rig_apply, rig_back, run. */
void rig_expect_batch(enum batch_session session, size_t nr);
/* NAME in the oldest batch will be given back undone, with the reason
 * AGAIN. */
void rig_give_back(const char *name, enum txn_again again);
/* The update of NAME in W, or NULL. */
struct txn_update *rig_find(struct batch *w, const char *name);
size_t rig_count(const struct batch *w);
void rig_looked_up(struct store_question *q, bool found);
void rig_found(struct store_question *q, bool found); /* the same; then run */

/* Checks that ASK has one answer: OUTCOME, and STATUS for both of two refs. */
void rig_expect_results(const struct rig_ask *ask, enum refd_outcome outcome,
    enum refd_status status);

/* Submits, admits and prepares a session; its client has the answer. */
struct rig_ask *rig_prepare(const struct rig_txn *t);

/* Fails if a committer is free while a runnable update waits. An update whose
 * name rests is not runnable. */
void rig_check_nothing_idles(void);

/* Submits, admits, runs. */
struct rig_ask *rig_go(const struct rig_txn *t);
struct rig_ask *rig_go_one(const char *name);
/* Names are PREFIX with 0, 1, ... appended. */
struct rig_ask *rig_go_many(unsigned repo, bool atomic, const char *prefix,
    size_t nr);
const char **rig_names(const char *prefix, size_t nr);
void rig_names_free(const char **names, size_t nr);

#endif
