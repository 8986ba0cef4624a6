/*
 * The replay of the records of one repository with reftables. Private to
 * replay_stacks.c, stack_places.c, stack_refs.c and stack_plan.c.
 *
 *	replay_stacks.c	the order of the steps, the new tables, the sweep
 *	stack_places.c	opens, locks, reads and publishes the stacks
 *	stack_refs.c	decides about each ref
 *	stack_plan.c	plans the new records
 *
 * An aborted transaction may have refs in several stacks, so all refs are
 * decided before the first table is planned.
 *
 * One thread; blocks; nothing logs. 0 or negative errno.
 */
#ifndef STORE_STACK_REPLAY_H
#define STORE_STACK_REPLAY_H

#include "daemon/store/recovery/redo.h"
#include "daemon/store/tables/recovery/stack_lines.h"
#include "daemon/store/tables/recovery/stack_rule.h"
#include "daemon/store/tables/stack/stack_update.h"

enum stack_entry_kind {
	STACK_ENTRY_VALUE,    /* the value of RECORD */
	STACK_ENTRY_LINE,     /* its log line, with the line's index */
	STACK_ENTRY_TOMBSTONE /* a log entry with INDEX goes */
};

/* A record of a new table. */
struct stack_entry {
	const char *name;
	enum stack_entry_kind kind;
	const struct ref_record *record;
	uint64_t index;
	struct refd_oid peeled; /* null: none */
};

/* A git-dir with a stack. */
struct stack_place {
	const char *worktree; /* "" for the common dir; borrowed */
	int git_fd;           /* owned unless repo->fd; -1 */
	bool is_gone;         /* the worktree was removed */
	struct stack *stack;  /* a reference; NULL: not open */
	/* The lock of an earlier run; or NULL. */
	struct leftover_lock *held;
	struct stack_update update;
	struct stack_reader reader;
	struct reftable_budget budget; /* of READER */
	uint64_t proved;               /* stack_rule.h */
	struct stack_entry *entries;
	size_t nr, size;
};

struct stack_ref {
	struct ref_records *records;
	struct stack_place *place;
	struct stack_found found;
	size_t nr_values; /* the last verdict was about so many rows */
	enum stack_verdict verdict;
	const struct ref_record *last; /* of the values */
	bool is_taken; /* another ref stands where the name must go */
};

struct stack_replay {
	struct replay *rp;
	struct stack_place *places; /* the common dir first, then by id */
	size_t nr_places, places_size;
	struct stack_ref *refs; /* by place, then by name */
	size_t nr_refs;
	/* Room for all records of a ref. */
	const struct record_member **members;
	const struct ref_record **values;
	struct stack_line *lines;
	size_t *nr_lines; /* added, by ref; NULL: nothing is planned yet */
};

/* Is RECORD to be redone? After a crash only if the lock of its row stands,
 * because a batch unlocks after its last rename. */
bool stack_replay_is_due(const struct stack_place *place,
    const struct ref_record *record);

/* ---- stack_places.c ---- */

/* Opens the stacks of all rows, or of all found worktrees if ROWS is NULL. */
int stack_places_open(struct stack_replay *sr, const struct replay_row *rows);
/* Opens the stack of WORKTREE as the only one. */
int stack_places_open_one(struct stack_replay *sr, const char *worktree);
/* Locks the lists. -EEXIST if another writer holds a lock. */
int stack_places_lock(struct stack_replay *sr);
/* Reads the stacks, and mends tables (stack_mend.h). -EBADMSG if a stack is
 * damaged, which is then reported. */
int stack_places_read(struct stack_replay *sr);
/* Removes the unlisted tables of ended batches. If a table stays, git removes
 * it once its index is old enough. */
int stack_places_sweep(struct stack_replay *sr, struct stack_place *place);
/* Can every stack be read? 1, 0, or another failure. Takes no lock. */
int stack_places_are_sound(struct stack_replay *sr);
struct stack_place *stack_places_find(const struct stack_replay *sr,
    const char *worktree);
/* Publishes a table with the entries of each place, after all tables are
 * durable. */
int stack_places_write(struct stack_replay *sr);
/* Releases everything but locks of an earlier run. R is the result so far.
 * Returns R, or the first failure. */
int stack_places_done(struct stack_replay *sr, int r);
/* Notes a failure of a stack; returns the errno for the whole repository. */
int stack_places_fail(struct stack_replay *sr, const struct stack_place *place,
    const struct reftable_fault *fault, int error);

/* ---- stack_refs.c ---- */

int stack_refs_list(struct stack_replay *sr);
/* Decides about all refs, and aborts updates. */
int stack_refs_decide(struct stack_replay *sr);
/* Is RECORD to be looked at, and not aborted by now? */
bool stack_refs_is_live(const struct stack_ref *ref,
    const struct ref_record *record);
/* Does REF get the value of its last row? */
bool stack_refs_is_redone(const struct stack_ref *ref);
/* Defers every record that is due. */
void stack_refs_defer(struct stack_replay *sr);
void stack_refs_done(struct stack_replay *sr);

/* ---- stack_plan.c ---- */

/* Plans the entries of all places. */
int stack_plan_refs(struct stack_replay *sr);
/* After the tables were published. */
void stack_plan_report(const struct stack_replay *sr);

#endif
