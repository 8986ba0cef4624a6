/*
 * The journal on a disk that fails and forgets (memfs.h), SQLite on a VFS over
 * it. For each system call of a commit, a checkpoint, an opening in turn that
 * call fails; then the journal is reopened, or the process is killed, or the
 * power is cut. Whatever comes:
 *	0 from journal_commit()		the rows are there, for ever
 *	a negative errno		they are not there, ever
 *	JOURNAL_UNKNOWN			either; but what the next opening has
 *					shown stays, also when a cut follows it
 *	at once
 * and all that was committed before is there, and all that is committed after.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/memfs.h"
#include "tests/lib/sysvfs.h"

#define DIR_NAME "/state"
#define VFS_NAME "faults"
#define ROWS     64
#define FEW      5

/* ---- a world: disk, VFS, journal ---- */

struct world {
	struct memfs *fs;
	struct sys sys; /* memfs's, with writes that tear */
	struct sysvfs *vfs;
	struct journal *j;
	unsigned next; /* number of the next row */

	/* Write number TEAR_AT from now, 0 being the next, is torn with ERR:
	 * TORN bytes of it arrive, or those up to the page's end. */
	long tear_at;
	int tear_err;
	bool tear_at_page;
	bool is_torn, was_torn;

	bool was_made_under_fault;
};

static struct world *world_of(const struct sys *sys)
{
	/* SYS is the member of that name. */
	return (struct world *)(uintptr_t)((const char *)sys -
	    offsetof(struct world, sys));
}

static ssize_t torn_pwrite(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	struct world *w = world_of(sys);
	size_t part = len / 2;

	if (w->is_torn) {
		w->is_torn = false;
		return w->tear_err;
	}
	if (w->tear_at-- == 0) {
		if (w->tear_at_page)
			part = 4096 - (size_t)offset % 4096;
		if (part >= len)
			part = len - 1;
		w->is_torn = w->was_torn = true;
		len = part;
		if (len == 0) {
			w->is_torn = false;
			return w->tear_err;
		}
	}
	return SYS(memfs_sys(w->fs), pwrite, fd, buf, len, offset);
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	w->fs = memfs_new();
	memfs_mkdirs(w->fs, DIR_NAME);
	w->sys = *memfs_sys(w->fs);
	w->sys.pwrite = torn_pwrite;
	w->tear_at = -1;
	w->vfs = sysvfs_new(VFS_NAME, &w->sys);
	return w;
}

static void world_open(struct world *w)
{
	w->j = help_open(&w->sys, DIR_NAME, VFS_NAME);
}

static void world_free(struct world *w)
{
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
	/* What fails while it is made is thrown away, so SQLite may do there
	 * what it likes. */
	if (!w->was_made_under_fault)
		ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
	journal_close(w->j);
	ck_assert_uint_eq(memfs_open_fds(w->fs), 0);
	sysvfs_free(w->vfs);
	memfs_free(w->fs);
	free(w);
}

static int add(struct world *w, unsigned nr, size_t bytes)
{
	int r = help_commit(w->j, w->next, nr, bytes);

	w->next += nr;
	return r;
}

/* The process is gone; connections are given back without a trace. */
static void end_process(struct world *w)
{
	memfs_die(w->fs, 0, -EIO);
	journal_close(w->j);
	w->j = NULL;
	memfs_fail_none(w->fs);
	w->tear_at = -1;
	w->is_torn = false;
	memfs_kill(w->fs);
}

static void cut(struct world *w, enum memfs_data data)
{
	struct memfs_choice choice = memfs_choose(1);
	unsigned i;

	end_process(w);
	choice.data = data;
	for (i = 0; i < MEMFS_MOUNTS_MAX; i++)
		choice.keep[i] = data == MEMFS_DATA_NONE ? 0 : -1;
	memfs_cut(w->fs, &choice);
}

/* ---- what is done to a commit, and what comes after ---- */

enum fault {
	WRITE_FAILS,
	WRITE_TEARS,
	WRITE_TEARS_AT_PAGE,
	SYNC_FAILS,
	ANY,
	NR_FAULTS
};
enum before { APPENDS, BEGINS_ANEW, FORGETS_TOO, LARGE, NR_BEFORE };
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

static void arm(struct world *w, enum fault fault, unsigned long n, int err)
{
	w->was_torn = false;
	switch (fault) {
	case WRITE_FAILS:
		memfs_fail_call(w->fs, MEMFS_PWRITE, n, err);
		return;
	case WRITE_TEARS:
	case WRITE_TEARS_AT_PAGE:
		w->tear_at = (long)n;
		w->tear_err = err;
		w->tear_at_page = fault == WRITE_TEARS_AT_PAGE;
		return;
	case SYNC_FAILS:
		memfs_fail_call(w->fs, MEMFS_FDATASYNC, n, err);
		return;
	case ANY:
		memfs_fail(w->fs, n, err);
		return;
	case NR_FAULTS:
		break;
	}
	ck_abort();
}

/* Did it come about? */
static bool disarm(struct world *w)
{
	bool was_hit = memfs_was_hit(w->fs) || w->was_torn;

	memfs_fail_none(w->fs);
	w->tear_at = -1;
	return was_hit;
}

/* Rows so far, in the state that BEFORE names; the rows to come in BYTES. */
static void prepare(struct world *w, enum before before, size_t *bytes)
{
	bool begins_anew = before == BEGINS_ANEW || before == FORGETS_TOO;
	unsigned i;

	*bytes = before == LARGE ? 9000 : 200;
	world_open(w);
	/* Where the WAL begins anew: an index page whose tail is the same in
	 * one WAL as in the next. */
	for (i = 0; i < (begins_anew ? 12 : FEW); i++) {
		ck_assert_int_eq(add(w, 1, 20), 0);
		if (begins_anew)
			ck_assert_int_eq(journal_checkpoint(w->j, 0), 0);
	}
	if (before == FORGETS_TOO)
		ck_assert_int_eq(journal_forget(w->j, 9, false), 0);
}

static void reopen(struct world *w)
{
	char *why = NULL;
	int r = journal_reopen(w->j, &why);

	ck_assert_msg(r == 0, "journal_reopen: %d, %s", r, why);
}

static void go_on(struct world *w, enum after after, int r)
{
	switch (after) {
	case CARRY_ON:
		/* Without any reopening, where that is allowed. */
		if (r != JOURNAL_UNKNOWN)
			return;
		reopen(w);
		return;
	case REOPEN:
	case REOPEN_THEN_CUT:
		reopen(w);
		return;
	case KILL:
	case KILL_THEN_CUT:
		end_process(w);
		break;
	case CUT_NONE:
		cut(w, MEMFS_DATA_NONE);
		break;
	case CUT_ALL:
		cut(w, MEMFS_DATA_ALL);
		break;
	case NR_AFTER:
		ck_abort();
	}
	world_open(w);
}

/* ROW is there or not as R and what was seen before demand. */
static bool check(struct world *w, unsigned row, unsigned nr, int r,
    const char *when)
{
	bool seen[ROWS], is_there;
	unsigned i;

	help_scan(w->j, seen, ROWS);
	for (i = 0; i < row; i++)
		ck_assert_msg(seen[i], "%s: row %u was acknowledged", when, i);
	is_there = seen[row];
	for (i = row; i < row + nr; i++)
		ck_assert_msg(seen[i] == is_there, "%s: half of it", when);
	ck_assert_msg(r != 0 || is_there, "%s: 0, and not there", when);
	ck_assert_msg(r >= 0 || !is_there, "%s: %d, and there", when, r);
	return is_there;
}

static bool one_commit(enum before before, enum fault fault, unsigned long n,
    int err, enum after after)
{
	struct world *w = world_new();
	unsigned row, later;
	bool was_hit, was_there;
	size_t bytes;
	char when[80];
	int r;

	snprintf(when, sizeof(when),
	    "before %d fault %d call %lu err %d"
	    " after %d",
	    (int)before, (int)fault, n, err, (int)after);
	prepare(w, before, &bytes);
	row = w->next;
	arm(w, fault, n, err);
	r = add(w, 2, bytes);
	was_hit = disarm(w);
	ck_assert_msg(was_hit || r == 0, "%s: %d without a fault", when, r);
	if (r == JOURNAL_UNKNOWN) {
		ck_assert_int_eq(help_commit(w->j, 900, 1, 16), r);
		ck_assert_int_eq(journal_checkpoint(w->j, 0), r);
	}
	go_on(w, after, r);
	was_there = check(w, row, 2, r, when);
	if (after == KILL_THEN_CUT || after == REOPEN_THEN_CUT) {
		cut(w, MEMFS_DATA_NONE);
		world_open(w);
		ck_assert_msg(check(w, row, 2, r, when) == was_there,
		    "%s: shown, and taken back", when);
	}
	later = w->next;
	ck_assert_msg(add(w, 3, bytes) == 0, "%s: later", when);
	cut(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert_msg(check(w, row, 2, r, when) == was_there,
	    "%s: shown, and taken back by a later cut", when);
	ck_assert_msg(help_has(w->j, later) && help_has(w->j, later + 2),
	    "%s: acknowledged later, and lost", when);
	world_free(w);
	return was_hit;
}

START_TEST(each_call_of_a_commit_fails)
{
	enum before before = (enum before)(_i / NR_FAULTS);
	enum fault fault = (enum fault)(_i % NR_FAULTS);
	unsigned long n;
	int after;
	bool was_hit = true;

	for (n = 0; was_hit && n < 100; n++) {
		was_hit = false;
		for (after = 0; after < NR_AFTER; after++)
			was_hit |= one_commit(before, fault, n,
			    (n + (unsigned)after) % 2 ? -ENOSPC : -EIO,
			    (enum after)after);
	}
	ck_assert_uint_gt(n, 1);
	ck_assert(!was_hit);
}
END_TEST

/* What the caller is told: the disk is full is not the sync has failed. */
START_TEST(a_failed_write_is_told_from_a_failed_sync)
{
	struct world *w = world_new();
	size_t bytes;

	prepare(w, APPENDS, &bytes);
	arm(w, WRITE_FAILS, 0, -ENOSPC);
	ck_assert_int_eq(add(w, 1, bytes), -ENOSPC);
	arm(w, WRITE_FAILS, 1, -EIO);
	ck_assert_int_eq(add(w, 1, bytes), -EIO);
	disarm(w);
	ck_assert_int_eq(add(w, 1, bytes), 0);
	arm(w, SYNC_FAILS, 0, -ENOSPC);
	ck_assert_int_eq(add(w, 1, bytes), JOURNAL_UNKNOWN);
	disarm(w);
	ck_assert_int_eq(add(w, 1, bytes), JOURNAL_UNKNOWN);
	reopen(w);
	ck_assert_int_eq(add(w, 1, bytes), 0);
	world_free(w);
}
END_TEST

START_TEST(a_full_disk_is_definite_until_there_is_room)
{
	struct world *w = world_new();
	unsigned i, row;
	size_t bytes;

	prepare(w, APPENDS, &bytes);
	memfs_set_room(w->fs, 0, 40000, -1);
	row = w->next;
	ck_assert_int_eq(add(w, 1, 200000), -ENOSPC);
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(help_commit(w->j, row + 2 + i, 1, 100000),
		    -ENOSPC);
	ck_assert_int_eq(help_commit(w->j, row + 1, 1, 16), 0);
	memfs_set_room(w->fs, 0, -1, -1);
	ck_assert_int_eq(help_commit(w->j, row + 2, 1, 200000), 0);
	cut(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert(!help_has(w->j, row));
	ck_assert(help_has(w->j, row + 1) && help_has(w->j, row + 2));
	world_free(w);
}
END_TEST

/* ---- checkpoints ---- */

static bool one_checkpoint(enum fault fault, unsigned long n, int err,
    enum after after)
{
	struct world *w = world_new();
	unsigned row;
	bool was_hit;
	size_t bytes;
	int r;

	prepare(w, APPENDS, &bytes);
	row = w->next;
	ck_assert_int_eq(add(w, 2, 6000), 0);
	arm(w, fault, n, err);
	r = journal_checkpoint(w->j, 0);
	was_hit = disarm(w);
	ck_assert(was_hit || r == 0);
	ck_assert_int_eq(add(w, 1, 16), r == JOURNAL_UNKNOWN ? r : 0);
	if (r != JOURNAL_UNKNOWN)
		ck_assert_int_eq(journal_checkpoint(w->j, 0), 0);
	go_on(w, after, r);
	check(w, row, 2, 0, "checkpoint");
	ck_assert_int_eq(help_commit(w->j, 60, 1, 6000), 0);
	ck_assert_int_eq(journal_checkpoint(w->j, 0), 0);
	ck_assert_int_eq(help_commit(w->j, 61, 1, 16), 0);
	cut(w, MEMFS_DATA_NONE);
	world_open(w);
	check(w, row, 2, 0, "checkpoint, cut");
	ck_assert(help_has(w->j, 60) && help_has(w->j, 61));
	world_free(w);
	return was_hit;
}

START_TEST(each_call_of_a_checkpoint_fails)
{
	enum fault fault = (enum fault)_i;
	unsigned long n;
	bool was_hit = true;
	int after;

	for (n = 0; was_hit && n < 400; n++) {
		was_hit = false;
		for (after = 0; after < NR_AFTER; after++)
			was_hit |= one_checkpoint(fault, n,
			    (n + (unsigned)after) % 2 ? -ENOSPC : -EIO,
			    (enum after)after);
	}
	ck_assert_uint_gt(n, 1);
	ck_assert(!was_hit);
}
END_TEST

/* ---- opening ---- */

/* A journal with rows in the WAL that a killed process left. */
static void leave_wal(struct world *w, bool is_fresh)
{
	size_t bytes;

	if (is_fresh)
		return;
	prepare(w, APPENDS, &bytes);
	end_process(w);
}

static void check_after_open(struct world *w, bool is_fresh)
{
	ck_assert_uint_eq(help_scan(w->j, NULL, 0), is_fresh ? 0 : FEW);
	ck_assert_int_eq(help_commit(w->j, 50, 1, 16), 0);
	cut(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert_uint_eq(help_scan(w->j, NULL, 0), is_fresh ? 1 : FEW + 1);
}

START_TEST(each_call_of_an_opening_fails)
{
	bool is_fresh = _i % 2, was_hit = true;
	enum memfs_mode mode = _i / 2 ? MEMFS_ORDERED : MEMFS_STRICT;
	unsigned long n;
	int k;

	for (n = 0; was_hit && n < 1000; n++) {
		was_hit = false;
		for (k = 0; k < 4; k++) {
			struct world *w = world_new();

			memfs_set_mode(w->fs, mode);
			leave_wal(w, is_fresh);
			w->was_made_under_fault = is_fresh;
			memfs_fail(w->fs, n, k % 2 ? -ENOSPC : -EIO);
			help_try_open(&w->sys, DIR_NAME, VFS_NAME, NULL);
			was_hit |= disarm(w);
			if (k / 2)
				cut(w, MEMFS_DATA_NONE);
			world_open(w);
			check_after_open(w, is_fresh);
			world_free(w);
		}
	}
	ck_assert_uint_gt(n, 20);
	ck_assert(!was_hit);
}
END_TEST

/* SQLite passes over the failed sync of a directory; the names of database and
 * WAL must last all the same. */
START_TEST(a_directory_that_was_not_synced_is_told)
{
	bool is_fresh = _i, was_hit = true;
	int told = 0, r = 0;
	unsigned long n;

	for (n = 0; was_hit; n++) {
		struct world *w = world_new();

		leave_wal(w, is_fresh);
		w->was_made_under_fault = is_fresh;
		memfs_fail_call(w->fs, MEMFS_FSYNC, n, -EIO);
		r = help_try_open(&w->sys, DIR_NAME, VFS_NAME, NULL);
		was_hit = disarm(w);
		told += r == -EIO;
		world_free(w);
	}
	ck_assert_int_eq(r, 0);
	/* After the renaming, and at the end. */
	ck_assert_int_eq(told, is_fresh ? 2 : 1);
}
END_TEST

START_TEST(the_power_goes_at_each_change_of_an_opening)
{
	bool is_fresh = _i, was_hit = true;
	unsigned long n;
	uint64_t seed;

	for (n = 0; was_hit && n < 1000; n++) {
		for (seed = 0; seed < 8; seed++) {
			struct world *w = world_new();
			struct memfs_choice choice = memfs_choose(seed);

			leave_wal(w, is_fresh);
			memfs_cut_at(w->fs, n);
			help_try_open(&w->sys, DIR_NAME, VFS_NAME, NULL);
			was_hit = memfs_was_hit(w->fs);
			end_process(w);
			memfs_cut(w->fs, &choice);
			world_open(w);
			check_after_open(w, is_fresh);
			world_free(w);
		}
	}
	ck_assert_uint_gt(n, 10);
	ck_assert(!was_hit);
}
END_TEST

/* ---- killed and cut at each change of a commit ---- */

static bool stopped_commit(enum before before, unsigned long n, bool by_cut,
    uint64_t seed)
{
	struct world *w = world_new();
	struct memfs_choice choice = memfs_choose(seed);
	bool was_hit, was_there;
	unsigned row;
	size_t bytes;
	int r;

	prepare(w, before, &bytes);
	row = w->next;
	if (by_cut)
		memfs_cut_at(w->fs, n);
	else
		memfs_kill_at(w->fs, n);
	r = add(w, 2, bytes);
	was_hit = memfs_was_hit(w->fs);
	end_process(w);
	if (by_cut)
		memfs_cut(w->fs, &choice);
	world_open(w);
	/* Stopped, it has told nobody. */
	was_there = check(w, row, 2, r == 0 ? 0 : JOURNAL_UNKNOWN, "stopped");
	cut(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert(
	    check(w, row, 2, r == 0 ? 0 : JOURNAL_UNKNOWN, "cut") == was_there);
	world_free(w);
	return was_hit;
}

/* The frames are in memory, their sync never ran: what the next start shows
 * to its clients must survive a cut right after. */
START_TEST(what_a_start_has_shown_survives_a_cut)
{
	enum before before = (enum before)_i;
	unsigned long n;
	uint64_t seed;
	bool was_hit = true;

	for (n = 0; was_hit && n < 100; n++) {
		was_hit = stopped_commit(before, n, false, 0);
		for (seed = 0; seed < 12; seed++)
			stopped_commit(before, n, true, seed);
	}
	ck_assert_uint_gt(n, 5);
	ck_assert(!was_hit);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("journal_faults");
	TCase *tc = tcase_create("faults");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, each_call_of_a_commit_fails, 0,
	    NR_BEFORE * NR_FAULTS);
	tcase_add_test(tc, a_failed_write_is_told_from_a_failed_sync);
	tcase_add_test(tc, a_full_disk_is_definite_until_there_is_room);
	tcase_add_loop_test(tc, each_call_of_a_checkpoint_fails, 0, NR_FAULTS);
	tcase_add_loop_test(tc, each_call_of_an_opening_fails, 0, 4);
	tcase_add_loop_test(tc, a_directory_that_was_not_synced_is_told, 0, 2);
	tcase_add_loop_test(tc, the_power_goes_at_each_change_of_an_opening, 0,
	    2);
	tcase_add_loop_test(tc, what_a_start_has_shown_survives_a_cut, 0,
	    NR_BEFORE);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
