/*
 * The stacks of a repository: one per git-dir, with refs and reflogs in
 * reftables.
 *
 * The directory reftable/ of a git-dir has the tables, and tables.list, the
 * names of the present tables in order. Every writer replaces the list by a
 * rename, under tables.list.lock. A table never changes, and its name never
 * comes back, so two lists with the same bytes have the same content.
 *
 *	stack.h		stacks, snapshots, the turn, names of sessions
 *	stack_set.h	the stacks of a repository
 *	stack_reader.h	look-ups in a snapshot
 *	stack_update.h	a change: base, table, lock, list, flushes, publishing
 *	stack_merge.h	merging of tables between batches
 *	stack_sweep.h	tables that nobody needs any more
 *
 * Ownership: struct repo owns a struct stack_set, which owns the stacks. A user
 * holds a reference to each used stack, because the set closes stacks that
 * nobody uses.
 * Threads: any, unless a comment says otherwise. The mutex is a leaf lock, and
 * is never held during disk I/O.
 * Blocking: a call with a descriptor or a snapshot blocks on the disk.
 * Errors: 0 or a negative errno, and nothing logs. Functions with FAULT
 * describe the failure there (reftable_stack_fault_text()). The repository is
 * hostile, so every call can fail:
 *	-EBADMSG	a damaged list or table, a missing table
 *	-ENOENT		no directory reftable/, or no list. Git would begin a
 *			new stack; refd writes nothing
 *	-EFBIG		beyond a bound: REFTABLE_LIST_MAX,
 *			REFTABLE_TABLES_MAX, memory
 *	-ELOOP, -ENOTDIR  reftable/ or a file there is a link, or no directory
 *	-EIO, -EMFILE, -ENOMEM ...	of the system
 */
#ifndef STORE_STACK_H
#define STORE_STACK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/base/mutex.h"
#include "daemon/store/tables/format/reftable_stack.h"

#define STACK_DIRECTORY "reftable"

/* Git counts on in 64 bits without a check, so the largest number stays
 * free. */
#define STACK_INDEX_MAX (UINT64_MAX - 1)

struct stack_name; /* in a hash; private to stack.c */

struct stack {
	const struct sys *sys; /* borrowed */
	atomic_uint refs;
	int dirfd;         /* of reftable/, no link; owned; for any thread */
	uint64_t dev, ino; /* of DIRFD */
	const enum refd_object_format *format; /* borrowed: the repository's */

	struct mutex mutex; /* the members below */
	pthread_cond_t turn_given;
	bool has_turn;               /* a batch of this daemon works here */
	struct stack_snapshot *last; /* a reference; only during a turn */
	struct stack_name *held;     /* names of prepared sessions */
	/* Tables that no list names any more. They must outlast a sync, because
	 * a power loss may bring back an older list. So the tables of DUE go
	 * after the sync that is running (stack_sweep.h), and the tables of
	 * RETIRED go after a later sync. */
	struct stack_name *retired, *due;
	/* Largest indices of the list: BEGUN_INDEX at the beginning of the sync
	 * that is running, and SYNCED_INDEX at the beginning of an earlier
	 * sync. All rows up to SYNCED_INDEX have LSNs up to SYNCED_LSN. Rows up
	 * to FORGOTTEN_INDEX need no replay, so tombstones up to
	 * FORGOTTEN_INDEX may go. */
	uint64_t begun_index, synced_index, synced_lsn, forgotten_index;
	bool is_searched; /* unlisted tables of earlier runs are in RETIRED */
	/* The list of the last place() or of the last stack_sync_base(), whose
	 * bytes and tables are durable. Owned. */
	char *durable_list;
	struct sys_stat durable_stat; /* of its file */
	/* A table of a merge that failed. A merge of this table, or of an
	 * earlier table, would fail again (stack_merge.c), so merges begin
	 * behind this table. Owned; NULL if there is none. */
	char *unmerged;
	int64_t merge_after_ns; /* CLOCK_MONOTONIC; for the checkpoint */
	uint64_t spent_index;   /* the largest index of a row of the log */
};

/* Counted. Immutable, except for IS_DURABLE. The tables are open, so later
 * changes of the list, and the removal of tables, do not matter. */
struct stack_snapshot {
	atomic_uint refs;
	/* The oldest table first, and the bytes of the list with its mode and
	 * its group. Snapshots share open tables. */
	struct reftable_stack tables;
	atomic_bool *is_durable; /* by table: flushed by refd */
	uint64_t max_index;      /* of all tables; 0: no table */
};

/* Opens the stack of the git-dir GIT_FD, with one reference, but reads no list.
 * *FORMAT is borrowed, and read at the first snapshot. */
int stack_open(const struct sys *sys, int git_fd,
    const enum refd_object_format *format, struct stack **stack);
void stack_hold(struct stack *stack);
void stack_put(struct stack *stack);

/* 0 if the path reftable/ in GIT_FD still leads to the directory of STACK, or
 * -ESTALE if it leads elsewhere, or nowhere. */
int stack_is_there(const struct stack *stack, int git_fd);

/*
 * Takes a snapshot of the present list, with a reference. During a turn the
 * last snapshot stays open. So a snapshot costs five system calls if the list
 * is still the same. If not, only the tables that the last snapshot lacks are
 * opened. An idle stack has no open table. If tables vanish, because git merged
 * them, the list is read again, for half a second. After a failure *SNAP is
 * NULL.
 */
int stack_snapshot(struct stack *stack, struct stack_snapshot **snap,
    struct reftable_fault *fault);
void stack_snapshot_hold(struct stack_snapshot *snap);
void stack_snapshot_put(struct stack_snapshot *snap);
/* Forgets the last snapshot, and which tables and list are durable, so that the
 * next snapshot after a failed sync comes from the disk. */
void stack_snapshot_forget(struct stack *stack);
/* Notes that LIST, with the file ST, and all tables of LIST are durable. Takes
 * LIST over. */
void stack_note_durable(struct stack *stack, char *list,
    const struct sys_stat *st);
/* Are A and B the same file, without a write in between? Equal bytes do not
 * prove this, because a tool can replace the list by a copy with the same
 * bytes, and the copy may be in memory alone. */
bool stack_is_same_file(const struct sys_stat *a, const struct sys_stat *b);

/*
 * Is table I of SNAP durable? Yes if refd flushed the table, or if the table is
 * older than the last syncfs of its file system. BEFORE_NS is fs_synced_ns()
 * less FS_SLACK_NS, or INT64_MIN if the time is not known. No disk I/O.
 */
bool stack_snapshot_is_durable(const struct stack_snapshot *snap, size_t i,
    int64_t before_ns);

/* The bytes of the tables of SNAP that are not durable, as above. */
uint64_t stack_snapshot_unsynced(const struct stack_snapshot *snap,
    int64_t before_ns);

/* ---- the turn ---- */

/* One batch of this daemon works on a stack at a time. give closes the tables
 * of the last snapshot, and may block. take blocks until the turn is free, but
 * at most WAIT_MS, and is false if a different batch still has the turn. A
 * thread that holds the turn of a stack takes the turn of a further stack only
 * in the order main, then worktrees by id, or with WAIT_MS 0, because otherwise
 * two threads could wait for each other. Any thread may give the turn back. */
bool stack_turn_take(struct stack *stack, unsigned wait_ms);
void stack_turn_give(struct stack *stack);

/* ---- update indices ---- */

/* A row of the log has INDEX, so from now on no new table gets INDEX or an
 * index below. */
void stack_spend_index(struct stack *stack, uint64_t index);
/* The index for a table on top of SNAP, above the list and above all spent
 * indices. 0 if no index is left, so the stack is broken. */
uint64_t stack_next_index(struct stack *stack,
    const struct stack_snapshot *snap);

/* ---- names of prepared sessions ---- */

/* Copies NAME. -EEXIST if a session holds NAME, or -ENOMEM. */
int stack_hold_name(struct stack *stack, const char *name);
void stack_drop_name(struct stack *stack, const char *name);
bool stack_is_held(struct stack *stack, const char *name);

/* ---- retired tables, for stack_fold.c and stack_sweep.c ---- */

/* Best effort: without memory the table stays for a later clean-up. */
void stack_retire(struct stack *stack, const char *table);
/* A list names TABLE now, so TABLE must not be removed. */
void stack_unretire(struct stack *stack, const char *table);
/* Makes all retired tables due. False if none is due. */
bool stack_retired_are_due(struct stack *stack);
/* Takes one due table, or returns false if there is none. */
bool stack_take_due(struct stack *stack,
    char table[REFTABLE_TABLE_NAME_MAX + 1]);

#endif
