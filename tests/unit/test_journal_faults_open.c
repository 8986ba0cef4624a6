/*
 * Proves that the journal survives failures of checkpoints and openings, on a
 * disk that fails and forgets. Every system call fails in turn, or tears, and
 * the power is lost at every change of an opening. Earlier commits are there
 * and later commits stay. A journal that could not be made is made the next
 * time.
 */
#include <errno.h>
#include <stdio.h>

#include "tests/lib/journal_world.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

/* ---- checkpoints ---- */

static bool one_checkpoint(enum fault fault, unsigned long n, int err,
    enum after after)
{
	struct journal_world *w = journal_world_new();
	unsigned row;
	bool was_hit;
	size_t bytes;
	int r;

	world_prepare(w, APPENDS, &bytes);
	row = w->next;
	ck_assert_int_eq(world_add(w, 2, 6000), 0);
	world_arm(w, fault, n, err);
	r = journal_checkpoint(w->j, 0);
	was_hit = world_disarm(w);
	ck_assert(was_hit || r == 0);
	ck_assert_int_eq(world_add(w, 1, 16), r == JOURNAL_UNKNOWN ? r : 0);
	if (r != JOURNAL_UNKNOWN)
		ck_assert_int_eq(journal_checkpoint(w->j, 0), 0);
	world_go_on(w, after, r);
	world_check(w, row, 2, 0, "checkpoint");
	ck_assert_int_eq(help_commit(w->j, 60, 1, 6000), 0);
	ck_assert_int_eq(journal_checkpoint(w->j, 0), 0);
	ck_assert_int_eq(help_commit(w->j, 61, 1, 16), 0);
	world_power_loss(w, MEMFS_DATA_NONE);
	world_open(w);
	world_check(w, row, 2, 0, "checkpoint, cut");
	ck_assert(help_has(w->j, 60) && help_has(w->j, 61));
	journal_world_free(w);
	return was_hit;
}

TEST(each_call_of_a_checkpoint_fails, .times = NR_FAULTS)
{
	enum fault fault = (enum fault)_i;
	unsigned long n;
	bool was_hit = true;
	int after;

	for (n = 0; was_hit && n < 400; n += sweep_step()) {
		was_hit = false;
		for (after = 0; after < NR_AFTER; after++)
			was_hit |= one_checkpoint(fault, n,
			    (n + (unsigned)after) % 2 ? -ENOSPC : -EIO,
			    (enum after)after);
	}
	ck_assert_uint_gt(n, 1);
	ck_assert(!was_hit);
}

/* ---- opening ---- */

/* A journal with rows in the WAL after a crash. */
static void leave_wal(struct journal_world *w, bool is_fresh)
{
	size_t bytes;

	if (is_fresh)
		return;
	world_prepare(w, APPENDS, &bytes);
	world_end_process(w);
}

static void check_after_open(struct journal_world *w, bool is_fresh)
{
	ck_assert_uint_eq(help_scan(w->j, NULL, 0), is_fresh ? 0 : WORLD_FEW);
	ck_assert_int_eq(help_commit(w->j, 50, 1, 16), 0);
	world_power_loss(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert_uint_eq(help_scan(w->j, NULL, 0),
	    is_fresh ? 1 : WORLD_FEW + 1);
}

/* False: the fault did not occur. */
static bool one_opening(enum fault fault, enum memfs_mode mode, bool is_fresh,
    unsigned long n, int k)
{
	struct journal_world *w = journal_world_new();
	bool was_hit;

	memfs_set_mode(w->fs, mode);
	leave_wal(w, is_fresh);
	w->was_made_under_fault = is_fresh;
	world_arm(w, fault, n, k % 2 ? -ENOSPC : -EIO);
	help_try_open(&w->sys, WORLD_DIR, WORLD_VFS, NULL);
	was_hit = world_disarm(w);
	/* The end of the process before was a fault of memfs, too. */
	if (fault != ANY)
		was_hit = w->was_torn;
	if (k / 2)
		world_power_loss(w, MEMFS_DATA_NONE);
	world_open(w);
	check_after_open(w, is_fresh);
	journal_world_free(w);
	return was_hit;
}

static const struct {
	enum fault fault;
	enum memfs_mode mode;
	unsigned long calls_min;
} openings[] = {
	{ ANY, MEMFS_STRICT, 20 },
	{ ANY, MEMFS_ORDERED, 20 },
	/* Also the room in the WAL, which is then given up. */
	{ WRITE_TEARS, MEMFS_STRICT, 5 },
	{ WRITE_TEARS_AT_PAGE, MEMFS_STRICT, 5 },
};

#define NR_OPENINGS (sizeof(openings) / sizeof(openings[0]))

TEST(each_call_of_an_opening_fails, .times = 2 * NR_OPENINGS)
{
	bool is_fresh = _i % 2, was_hit = true;
	unsigned long n;
	int k;

	for (n = 0; was_hit && n < 1000; n += sweep_step()) {
		was_hit = false;
		for (k = 0; k < 4; k++)
			was_hit |= one_opening(openings[_i / 2].fault,
			    openings[_i / 2].mode, is_fresh, n, k);
	}
	ck_assert_uint_gt(n, openings[_i / 2].calls_min);
	ck_assert(!was_hit);
}

/* SQLite ignores a failed sync of a directory, but the names of database and
 * WAL must last. */
TEST(a_directory_that_was_not_synced_is_told, .times = 2)
{
	bool is_fresh = _i, was_hit = true;
	int told = 0, r = 0;
	unsigned long n;

	for (n = 0; was_hit; n++) {
		struct journal_world *w = journal_world_new();

		leave_wal(w, is_fresh);
		w->was_made_under_fault = is_fresh;
		memfs_fail_call(w->fs, MEMFS_FSYNC, n, -EIO);
		r = help_try_open(&w->sys, WORLD_DIR, WORLD_VFS, NULL);
		was_hit = world_disarm(w);
		told += r == -EIO;
		journal_world_free(w);
	}
	ck_assert_int_eq(r, 0);
	/* After the renaming, or once the size of the room is forgotten; and at
	 * the end. */
	ck_assert_int_eq(told, 2);
}

TEST(the_power_goes_at_each_change_of_an_opening, .times = 2)
{
	bool is_fresh = _i, was_hit = true;
	unsigned long n;
	uint64_t seed;

	for (n = 0; was_hit && n < 1000; n += sweep_step()) {
		for (seed = 0; seed < 8; seed++) {
			struct journal_world *w = journal_world_new();
			struct memfs_choice choice = memfs_choose(seed);

			leave_wal(w, is_fresh);
			memfs_power_loss_at(w->fs, n);
			help_try_open(&w->sys, WORLD_DIR, WORLD_VFS, NULL);
			was_hit = memfs_was_hit(w->fs);
			world_end_process(w);
			memfs_power_loss(w->fs, &choice);
			world_open(w);
			check_after_open(w, is_fresh);
			journal_world_free(w);
		}
	}
	ck_assert_uint_gt(n, 10);
	ck_assert(!was_hit);
}
