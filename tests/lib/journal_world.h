/*
 * A journal on a disk that fails and loses data (memfs.h), with SQLite on a VFS
 * over the disk: faults, and checks of the result. Rows are those of
 * journal_help.h, numbered from 0. Every call fails the test instead of
 * returning an error, unless stated otherwise.
 */
#ifndef TESTS_LIB_JOURNAL_WORLD_H
#define TESTS_LIB_JOURNAL_WORLD_H

#include "tests/lib/journal_help.h"
#include "tests/lib/memfs.h"
#include "tests/lib/sysvfs.h"

#define WORLD_DIR  "/state"
#define WORLD_VFS  "world"
#define WORLD_ROWS 64 /* world_check() ignores further rows */
#define WORLD_FEW  5  /* rows that world_prepare() usually makes */

struct journal_world {
	struct memfs *fs;
	struct sys sys; /* memfs's calls, with torn writes */
	struct sysvfs *vfs;
	struct journal *j;
	unsigned next; /* number of the next row */

	/* Write number TEAR_AT from now (0: the next) fails with TEAR_ERR after
	 * half of the data, or after the part in the first page. */
	long tear_at;
	int tear_err;
	bool tear_at_page;
	bool is_torn, was_torn;

	bool was_made_under_fault; /* see journal_world_free() */
};

struct journal_world *journal_world_new(void);
/* Fails after forbidden calls: use of a closed descriptor, or a second attempt
 * after a failed sync. */
void journal_world_free(struct journal_world *w);
void world_open(struct journal_world *w);
/* Returns the result of journal_commit() for NR rows of BYTES each. */
int world_add(struct journal_world *w, unsigned nr, size_t bytes);

/* A crash of the process. Connections leave no trace. */
void world_end_process(struct journal_world *w);
/* A crash of the process and a power loss. */
void world_power_loss(struct journal_world *w, enum memfs_data data);

/* Call number N of this kind fails with ERR (0: the next). */
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
/* Disarms the fault. Returns whether the fault occurred. */
bool world_disarm(struct journal_world *w);

/* Opens the journal with rows, in the state BEFORE. *BYTES is the size for
 * further rows. */
enum before { APPENDS, BEGINS_ANEW, FORGETS_TOO, LARGE, NR_BEFORE };
void world_prepare(struct journal_world *w, enum before before, size_t *bytes);

/* The next step after a call that returned R. */
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

/* Checks that all rows before ROW are there, and the NR rows from ROW as
 * required by R, the result of their commit: all, none, or either. Returns
 * whether these rows are there. */
bool world_check(struct journal_world *w, unsigned row, unsigned nr, int r,
    const char *when);

#endif
