/*
 * A journal on a disk that fails and forgets (memfs.h), with SQLite on a VFS
 * over it: what is done to it, and what is left afterwards. Rows are those of
 * journal_help.h, numbered from 0. Every call fails the test rather than
 * returning an error, unless it says otherwise.
 */
#ifndef TESTS_LIB_JOURNAL_WORLD_H
#define TESTS_LIB_JOURNAL_WORLD_H

#include "tests/lib/journal_help.h"
#include "tests/lib/memfs.h"
#include "tests/lib/sysvfs.h"

#define WORLD_DIR  "/state"
#define WORLD_VFS  "world"
#define WORLD_ROWS 64 /* more are not looked at by world_check() */
#define WORLD_FEW  5  /* rows that world_prepare() makes where it may */

struct journal_world {
	struct memfs *fs;
	struct sys sys; /* memfs's, with writes that tear */
	struct sysvfs *vfs;
	struct journal *j;
	unsigned next; /* number of the next row */

	/* Write number TEAR_AT from now, 0 being the next, fails with TEAR_ERR
	 * when half of it has arrived, or what is in its first page. */
	long tear_at;
	int tear_err;
	bool tear_at_page;
	bool is_torn, was_torn;

	bool was_made_under_fault; /* see journal_world_free() */
};

struct journal_world *journal_world_new(void);
/* Looks for what must never be done: a closed descriptor used, a failed sync
 * tried again. */
void journal_world_free(struct journal_world *w);
void world_open(struct journal_world *w);
void world_reopen(struct journal_world *w);
/* What journal_commit() answers for NR rows of BYTES each. */
int world_add(struct journal_world *w, unsigned nr, size_t bytes);

/* Killed; connections are given back without a trace. */
void world_end_process(struct journal_world *w);
/* Killed, and the power is cut. */
void world_power_loss(struct journal_world *w, enum memfs_data data);

/* Call number N of that kind fails with ERR, 0 being the next. */
enum fault {
	WRITE_FAILS,
	WRITE_TEARS,
	WRITE_TEARS_AT_PAGE,
	SYNC_FAILS,
	ANY,
	NR_FAULTS
};
void world_arm(struct journal_world *w, enum fault fault, unsigned long n,
    int err);
/* Did it come about? */
bool world_disarm(struct journal_world *w);

/* Opens the journal, with rows so far, in the state that BEFORE names; *BYTES:
 * how large the rows to come should be. */
enum before { APPENDS, BEGINS_ANEW, FORGETS_TOO, LARGE, NR_BEFORE };
void world_prepare(struct journal_world *w, enum before before, size_t *bytes);

/* What comes after a call that answered R. */
enum after {
	REOPEN,
	KILL,
	CUT_NONE,
	CUT_ALL,
	KILL_THEN_CUT,
	REOPEN_THEN_CUT,
	CARRY_ON,
	NR_AFTER
};
void world_go_on(struct journal_world *w, enum after after, int r);

/* All rows before ROW are there, and the NR from ROW as R, the answer to their
 * commit, demands: all, none, or either. Returns which. */
bool world_check(struct journal_world *w, unsigned row, unsigned nr, int r,
    const char *when);

#endif
