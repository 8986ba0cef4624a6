/*
 * Proves the promises of journal_commit() on a disk that fails and forgets
 * (memfs.h), with SQLite on a VFS over it. Each system call of a commit fails
 * in turn, and a crash or a power loss comes at each change. Then the journal
 * is reopened, the process is killed, or the power is lost.
 *
 * After 0, the rows are there for ever. After a negative errno, they are never
 * there. After JOURNAL_UNKNOWN, both outcomes are possible; but a power loss
 * right after the next opening takes no row that this opening has shown.
 * Earlier and later commits are there.
 */
#include <errno.h>
#include <stdio.h>

#include "tests/lib/journal_world.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

static bool one_commit(enum before before, enum fault fault, unsigned long n,
    int err, enum after after)
{
	struct journal_world *w = journal_world_new();
	unsigned row, later;
	bool was_hit, was_there;
	size_t bytes;
	char when[80];
	int r;

	snprintf(when, sizeof(when),
	    "before %d fault %d call %lu err %d"
	    " after %d",
	    (int)before, (int)fault, n, err, (int)after);
	world_prepare(w, before, &bytes);
	row = w->next;
	world_arm(w, fault, n, err);
	r = world_add(w, 2, bytes);
	was_hit = world_disarm(w);
	ck_assert_msg(was_hit || r == 0, "%s: %d without a fault", when, r);
	if (r == JOURNAL_UNKNOWN) {
		ck_assert_int_eq(help_commit(w->j, 900, 1, 16), r);
		ck_assert_int_eq(journal_checkpoint(w->j, 0), r);
	}
	world_go_on(w, after, r);
	was_there = world_check(w, row, 2, r, when);
	if (after == KILL_THEN_CUT || after == REOPEN_THEN_CUT) {
		world_power_loss(w, MEMFS_DATA_NONE);
		world_open(w);
		ck_assert_msg(world_check(w, row, 2, r, when) == was_there,
		    "%s: shown, and taken back", when);
	}
	later = w->next;
	ck_assert_msg(world_add(w, 3, bytes) == 0, "%s: later", when);
	world_power_loss(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert_msg(world_check(w, row, 2, r, when) == was_there,
	    "%s: shown, and taken back by a later cut", when);
	ck_assert_msg(help_has(w->j, later) && help_has(w->j, later + 2),
	    "%s: acknowledged later, and lost", when);
	journal_world_free(w);
	return was_hit;
}

TEST(each_call_of_a_commit_fails, .times = NR_BEFORE * NR_FAULTS)
{
	enum before before = (enum before)(_i / NR_FAULTS);
	enum fault fault = (enum fault)(_i % NR_FAULTS);
	unsigned long n;
	int after;
	bool was_hit = true;

	for (n = 0; was_hit && n < 100; n += sweep_step()) {
		was_hit = false;
		for (after = 0; after < NR_AFTER; after++)
			was_hit |= one_commit(before, fault, n,
			    (n + (unsigned)after) % 2 ? -ENOSPC : -EIO,
			    (enum after)after);
	}
	ck_assert_uint_gt(n, 1);
	ck_assert(!was_hit);
}

/* The caller can tell a full disk from a failed sync. */
TEST(a_failed_write_is_told_from_a_failed_sync)
{
	struct journal_world *w = journal_world_new();
	size_t bytes;

	world_prepare(w, APPENDS, &bytes);
	world_arm(w, WRITE_FAILS, 0, -ENOSPC);
	ck_assert_int_eq(world_add(w, 1, bytes), -ENOSPC);
	world_arm(w, WRITE_FAILS, 1, -EIO);
	ck_assert_int_eq(world_add(w, 1, bytes), -EIO);
	world_disarm(w);
	ck_assert_int_eq(world_add(w, 1, bytes), 0);
	world_arm(w, SYNC_FAILS, 0, -ENOSPC);
	ck_assert_int_eq(world_add(w, 1, bytes), JOURNAL_UNKNOWN);
	world_disarm(w);
	ck_assert_int_eq(world_add(w, 1, bytes), JOURNAL_UNKNOWN);
	help_reopen(w->j);
	ck_assert_int_eq(world_add(w, 1, bytes), 0);
	journal_world_free(w);
}

TEST(a_full_disk_is_definite_until_there_is_room)
{
	struct journal_world *w = journal_world_new();
	unsigned i, row;
	size_t bytes;

	world_prepare(w, APPENDS, &bytes);
	memfs_set_room(w->fs, 0, 40000, -1);
	row = w->next;
	ck_assert_int_eq(world_add(w, 1, 200000), -ENOSPC);
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(help_commit(w->j, row + 2 + i, 1, 100000),
		    -ENOSPC);
	ck_assert_int_eq(help_commit(w->j, row + 1, 1, 16), 0);
	memfs_set_room(w->fs, 0, -1, -1);
	ck_assert_int_eq(help_commit(w->j, row + 2, 1, 200000), 0);
	world_power_loss(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert(!help_has(w->j, row));
	ck_assert(help_has(w->j, row + 1) && help_has(w->j, row + 2));
	journal_world_free(w);
}

/* ---- crash and power loss at each change of a commit ---- */

static bool stopped_commit(enum before before, unsigned long n, bool by_cut,
    uint64_t seed)
{
	struct journal_world *w = journal_world_new();
	struct memfs_choice choice = memfs_choose(seed);
	bool was_hit, was_there;
	unsigned row;
	size_t bytes;
	int r;

	world_prepare(w, before, &bytes);
	row = w->next;
	if (by_cut)
		memfs_power_loss_at(w->fs, n);
	else
		memfs_crash_at(w->fs, n);
	r = world_add(w, 2, bytes);
	was_hit = memfs_was_hit(w->fs);
	world_end_process(w);
	if (by_cut)
		memfs_power_loss(w->fs, &choice);
	world_open(w);
	/* The stopped process gave no answer. */
	was_there =
	    world_check(w, row, 2, r == 0 ? 0 : JOURNAL_UNKNOWN, "stopped");
	world_power_loss(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert(world_check(w, row, 2, r == 0 ? 0 : JOURNAL_UNKNOWN, "cut") ==
	    was_there);
	journal_world_free(w);
	return was_hit;
}

/* The frames are in memory without a sync. A power loss right after the next
 * start must not take anything that the start has shown to clients. */
TEST(what_a_start_has_shown_survives_a_power_loss, .times = NR_BEFORE)
{
	enum before before = (enum before)_i;
	unsigned long n;
	uint64_t seed;
	bool was_hit = true;

	for (n = 0; was_hit && n < 100; n += sweep_step()) {
		was_hit = stopped_commit(before, n, false, 0);
		for (seed = 0; seed < 12; seed++)
			stopped_commit(before, n, true, seed);
	}
	ck_assert_uint_gt(n, 5);
	ck_assert(!was_hit);
}
