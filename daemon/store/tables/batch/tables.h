/*
 * The tables backend: refs and reflogs in reftables. Private to tables*.c.
 *
 * A batch adds one table to each changed stack, of the common dir and of linked
 * worktrees. Git waits only 100 ms for the lock of a list, so a round reads a
 * snapshot of the stacks, checks, and writes the tables without a lock. Then
 * seal() locks the lists and compares them with the snapshots. If another
 * writer changed a list, the checks may be wrong, so all changes of the
 * repository begin a new round.
 */
#ifndef STORE_TABLES_H
#define STORE_TABLES_H

#include "daemon/store/batch/backend.h"
#include "daemon/store/tables/stack/stack_look.h"
#include "daemon/store/tables/stack/stack_update.h"

struct tables_record {
	const struct change *change;
	bool is_log;
};

/* One stack of the repository in a pass. */
struct tables_part {
	struct tables_part *next; /* the common dir, then worktrees by id */
	const struct repo_slice *repo_slice;
	const char *worktree; /* "": the common dir; borrowed */
	struct stack_update update;
	struct stack_reader reader; /* of update.base */
	bool has_base;              /* of this round: update.base and READER */
	bool is_synced;             /* a flush was begun */
	/* The new table; owned. */
	struct tables_record *records;
	size_t nr_records;
	/* Is there a live change of this round, and does one confirm a value?
	 * Set by count() of tables_records.c. */
	bool has_changes, confirms;
};

/* ---- the operations (backend.h) ---- */

void tables_stage(struct pass *p, struct repo_slice *g);
bool tables_hold(struct pass *p, struct change *c, struct loose_value *value);
void tables_held(struct pass *p, struct repo_slice *g);
int tables_look(struct pass *p, const struct change *at,
    struct loose_value *value);
void tables_glance(struct pass *p, struct repo_slice *g);
int tables_has_log(struct pass *p, const struct change *at);
void tables_conflict(struct pass *p, struct change *c);
void tables_log(struct pass *p, struct change *c, bool create);
bool tables_make(struct pass *p, struct repo_slice *g);
bool tables_seal(struct pass *p, struct repo_slice *g);
void tables_wait(struct pass *p, struct repo_slice *g);
void tables_sync(struct pass *p, struct repo_slice *g);
void tables_synced(struct pass *p, struct repo_slice *g);
int tables_sync_error(const struct repo_slice *g);
void tables_publish(struct pass *p, struct repo_slice *g);
void tables_release(struct pass *p, struct repo_slice *g);
bool tables_resume(struct pass *p, struct repo_slice *g);

/* ---- parts (tables.c) ---- */

/* Finds or makes the part at the place of AT, with a base and a reader. 0 or a
 * negative errno, as in stack.h, and two more. -EBUSY: a different batch works
 * in the stack. -EFBIG: the stack has too many tables for this pass, so the
 * changes, if they can, go to a pass of their own. */
int tables_part(struct pass *p, const struct change *at,
    struct tables_part **part);
/* Gives the pass a new budget, before the first read. */
void tables_begin_reading(struct pass *p, struct repo_slice *g);
/* Ends the round and forgets everything that was read, but locks stay. */
void tables_end_round(struct pass *p, struct repo_slice *g);
/* Drops all parts. With KEEP, locks and files stay for recovery. *REST is set
 * if a file or a lock could not be removed. */
void tables_drop_parts(struct pass *p, struct repo_slice *g, bool keep,
    bool *rest);
/* Fails C with the words for an error R of PART. If PART is NULL, R is an error
 * of opening a stack. */
void tables_fail(struct change *c, const struct tables_part *part, int r,
    const char *doing);
void tables_fail_all(struct repo_slice *g, const struct tables_part *part,
    int r, const char *doing);

/* ---- sessions (tables_session.c) ---- */

/* Holds the names of all live changes of G until tables_drop_names(). */
void tables_hold_names(struct pass *p, struct repo_slice *g);
void tables_drop_names(struct repo_slice *g);

/* ---- records (tables_records.c) ---- */

/* C is `ok` without a record, because the value or the absence is already
 * there. */
bool tables_writes_nothing(const struct change *c);
/* Lists the records of the live changes of G in their parts. 0 or -ENOMEM. */
int tables_list_records(struct pass *p, struct repo_slice *g);
/* stack_record_of_fn; ARG is a part. */
void tables_record_of(void *arg, size_t i, struct reftable_record *record);

/* The work that a batch may do in the tables of one repository, counted in
 * bytes that are read. Other repositories may have to wait for the batch, so
 * the limit is the work for some hundred small blocks. */
#define TABLES_WORK ((uint64_t)4 * 1024 * 1024)

#endif
