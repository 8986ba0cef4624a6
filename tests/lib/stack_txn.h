/*
 * Scripted transactions of refd in a world (world.h) whose repository has
 * reftables, and the other writer, who acts as git. The steps of a transaction
 * are those of stack_update.h, in the order of a batch.
 *
 * Functions of the other writer use memfs_other(): faults and counters do not
 * apply, and failures end the process.
 */
#ifndef TESTS_LIB_STACK_TXN_H
#define TESTS_LIB_STACK_TXN_H

#include "tests/lib/reftable_help.h"
#include "tests/lib/scripted_txn.h"

#define STACK_DIR WORLD_REPO "/reftable"
/* The common dir, and the worktree "wt". */
#define STACK_TXN_PLACES 2

enum stack_txn_step {
	STACK_TXN_STAGED, /* durable base, table, lock and list; no row */
	STACK_TXN_LOGGED, /* the row; nothing is flushed */
	STACK_TXN_SYNCED, /* table, list and directory */
	STACK_TXN_PLACED, /* the lists are renamed, the locks stand */
	STACK_TXN_DONE
};

struct stack_txn {
	struct scripted_txn h; /* the world, ATOMIC, and the results */
	/* After this step the transaction ends with -EAGAIN, as in a crash. */
	enum stack_txn_step end;
	/* The members with their indices and old values, as in the row. */
	struct record_member members[8];
};

/* A world with a stack of one table by git, all with index 1: HEAD points to
 * refs/heads/main; refs/heads/main and refs/heads/x have '1' and logs. The
 * worktree "wt" has a stack with HEAD at '1'. Takes over FS; not started. */
struct world *stack_txn_world(struct memfs *fs);

/* A member of update INDEX: NAME goes to NEW ('0': deleted). Old value and
 * indices come from the stack under the lock. */
struct record_member stack_txn_member(uint32_t index, const char *worktree,
    const char *name, char new_c);

/* One batch with one transaction of NR members. 0, -EAGAIN, or the errno of the
 * failed step. */
int stack_txn_apply(struct stack_txn *t, const struct record_member *members,
    size_t nr);
/* A transaction of one member, which must succeed. T gets the id and the
 * members of the transaction. */
void stack_txn_ok(struct stack_txn *t, struct world *w, const char *name,
    char new_c);

/* A ref before and after an update. */
struct stack_txn_ref {
	uint32_t index; /* of the update */
	const char *worktree, *name;
	char before, after;
	/* The log without the indices; NULL: not looked at. */
	const char *log_before, *log_after;
};

/* What is wrong with REF after its update HAPPENED or not; NULL: nothing. */
const char *stack_txn_look(struct world *w, const struct stack_txn_ref *ref,
    bool happened);

/* ---- the other writer ---- */

/* The directory of the tables of PLACE, to be closed. */
int stack_txn_dir(struct world *w, int place);
/* Appends a table of NR records with the next index, which replaces their
 * index 0. Syncs table and list with SYNC. */
void stack_txn_git(struct world *w, bool sync,
    const struct reftable_record *records, size_t nr);
/* The same for a ref with its log entry ('0': a deletion). */
void stack_txn_git_ref(struct world *w, const char *name, char old, char new_c);
/* The same with INDEX: JGit counted on from an older list. */
void stack_txn_jgit_ref(struct world *w, uint64_t index, const char *name,
    char old, char new_c);
/* Merges all tables into one, and unlinks them. */
void stack_txn_git_merge(struct world *w);

/* ---- looks ---- */

/* The value of NAME in WORKTREE: its letter, '0' absent, '>' a symbolic ref,
 * '!' a damaged stack. INDEX (may be NULL) gets the index of the record. */
char stack_txn_value(struct world *w, const char *worktree, const char *name,
    uint64_t *index);
/* The log of NAME as "1>2@5 0>1@1 ", the newest first. Static. */
const char *stack_txn_log(struct world *w, const char *worktree,
    const char *name);
/* Finds litter: as world_litter(), or an unlisted table. */
const char *stack_txn_litter(struct world *w);
/* The largest index of the last table of the common dir: git counts on from
 * there. */
uint64_t stack_txn_last(struct world *w);

#endif
