/*
 * A scheduler with a store that does what a test says, and a clock that stands
 * still until it is told otherwise.
 *
 * The store here keeps what it is given until the test gives it back. With
 * every window it checks what scheduler and store have agreed on: names in all
 * windows in its hands disjoint and unrelated, atomic transactions whole, a
 * transaction in one window at a time, a repository's deletions too, nothing ahead of what came before it
 * under the same or a related name, one's own related names together; a
 * session alone in its windows, ended once after it was prepared, with all that
 * it holds. With every answer: no request is answered twice.
 */
#ifndef TESTS_LIB_SCHEDULER_RIG_H
#define TESTS_LIB_SCHEDULER_RIG_H

#include "daemon/scheduler/scheduler.h"

#define RIG_MS 1000000LL

struct rig_client {
	int unused;
};

/* One request and its answer. */
struct rig_ask {
	struct rig_client *client;
	uint64_t id;       /* of what was submitted */
	struct txn *txn;   /* while REPO is set, or being admitted */
	struct repo *repo; /* from its admission until it is forgotten */
	bool is_forgotten;
	bool is_prepared; /* a session, whose locks the store has */
	unsigned nr_answers, nr_parts;
	enum refd_answer_kind kind;
	enum refd_outcome outcome;
	enum refd_status refused;
	enum refd_status *statuses;
	size_t nr;
	char *text; /* the first there is */
	bool rewrites_packed;
	uint32_t retry_after_ms;
};

struct rig_config {
	size_t committers, window_refs, max_bytes;
	struct quota_config quotas;
	struct quota_limits of_repo;
	bool large; /* leaves out the checks that cost n * n */
};

/* The store would begin a window at once. */
extern bool rig_takes;
extern struct scheduler *rig_scheduler;
extern int64_t rig_now, rig_wall_ms, rig_next;
extern struct window *rig_windows; /* in the store's hands, oldest first */
extern struct txn *rig_admissions; /* likewise */
extern struct store_query *rig_lookups;
extern uint64_t rig_nr_windows, rig_nr_released;
/* Called within an answer's callback, or NULL. */
extern void (*rig_on_answer)(struct rig_ask *ask);

void rig_setup(const struct rig_config *cfg);
/* Fixtures. One committer, or three, and windows of ten refs; two committers
 * and windows of a hundred, for tests that neither matters to. */
void rig_setup_one_committer(void);
void rig_setup_committers(void);
void rig_setup_roomy(void);
/* Gives back what the store still has, and fails where a repository's
 * reference or a request was lost. Where a test has freed rig_scheduler itself
 * and set it to NULL, only the former. */
void rig_teardown(void);

/* What to submit; zeroes are one update of repository 0 by uid 0. */
struct rig_txn {
	uint64_t id; /* 0: the next free one */
	uint32_t uid;
	unsigned repo;
	bool atomic, session, push, deletes;
	uint32_t deadline_ms;
	/* Less 1; 0: the client names none. */
	uint32_t ref_lock_timeout_ms, packed_refs_timeout_ms;
	int64_t born_ms; /* relative to now */
	size_t bytes;
	const char *const *names;
	size_t nr;
	char fill; /* of the new oids: another content */
	struct rig_client *client;
};
/* .names and .nr of an initialiser. */
#define RIG_NAMES(...)                                                         \
	.names = (const char *const[]){ __VA_ARGS__ },                         \
	.nr = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)

struct rig_ask *rig_submit(const struct rig_txn *t);
struct rig_ask *rig_query(uint32_t uid, uint64_t id, int64_t born_ms);
struct rig_ask *rig_cancel(uint32_t uid, uint64_t id);
struct rig_ask *rig_commit(uint32_t uid, uint64_t id);
struct rig_ask *rig_abort(uint32_t uid, uint64_t id);
/* The one that was submitted last. */
uint64_t rig_last_id(void);
void rig_forget(struct rig_client *client);

void rig_run(void);
void rig_pass(int64_t ns); /* time passes, then run */

/* The store gives back. */
void rig_admit(struct txn *txn);     /* as it is; takes it off the list */
void rig_admit_one(struct txn *txn); /* with a repository */
void rig_admit_all(void);            /* with a repository; then run */
/* With a repository, and its window is in the store's hands. False: TXN can't go
 * the direct way, and nothing is done. The other three take no window. */
bool rig_admit_directly(struct txn *txn);
/* Turned away, though opened unless STATUS is REFD_NOREPO; then run. */
void rig_refuse(struct txn *txn, enum refd_status status, const char *why);
/* Decides all that is undecided: ok; or prepares it, or lets go of it. */
void rig_apply(struct window *w);
void rig_back(struct window *w); /* as it is */
void rig_back_all(void);         /* rig_apply, rig_back, run */
/* The window that waits is this step of a session with NR refs, alone in it;
 * rig_apply, rig_back, run. */
void rig_expect_window(enum window_session session, size_t nr);
/* NAME, in the window that waits longest, will go back undone: for AGAIN. */
void rig_give_back(const char *name, enum txn_again again);
/* The update of that name in W, or NULL. */
struct txn_update *rig_find(struct window *w, const char *name);
size_t rig_count(const struct window *w);
void rig_found(struct store_query *q, bool found);

/* It was answered once: OUTCOME, and STATUS for both of two refs. */
void rig_expect_results(const struct rig_ask *ask, enum refd_outcome outcome,
    enum refd_status status);

/* Submits a session, admits, prepares; it has been told so. */
struct rig_ask *rig_prepare(const struct rig_txn *t);

/* Fails where a committer is free and something that could go waits. Not where
 * names rest. */
void rig_check_nothing_idles(void);

/* Submits, admits, runs. */
struct rig_ask *rig_go(const struct rig_txn *t);
struct rig_ask *rig_go_one(const char *name);
/* PREFIX with 0, 1, ... behind it. */
struct rig_ask *rig_go_many(unsigned repo, bool atomic, const char *prefix,
    size_t nr);
const char **rig_names(const char *prefix, size_t nr);
void rig_names_free(const char **names, size_t nr);

#endif
