/*
 * Proves the five calls of the commit log, on a disk that fails and forgets
 * (memfs.h).
 *
 * A new log has no writer until a claim, and a failed claim changes no row. An
 * append does not wait for a flush, so two logs can be appended to before a
 * wait. Rows are read in LSN order.
 *
 * After any failed call of the disk, the wait tells whether the rows are there.
 * The log and a power loss agree with the answer, and the log goes on. Two
 * appends that lost the same sync are both found out, and equal rows are told
 * apart. If the disk stays away, the log is dead and the answer is unknown.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/journal_world.h"
#include "tests/lib/suite.h"

#define BYTES  200
#define FIRST  5 /* the row that a test appends */
#define SECOND "/second"

static struct journal_world *w;
static struct commit_log *the_log;
static unsigned nr_failed;

static void failed(void *arg, const char *why)
{
	ck_assert_ptr_eq(arg, w);
	ck_assert_ptr_nonnull(why);
	nr_failed++;
}

static struct commit_log *open_as(const char *dir, bool adopt)
{
	const struct journal_config cfg = { .sys = &w->sys,
		.dir = dir,
		.vfs = WORLD_VFS,
		.boot_id = HELP_BOOT,
		.adopt = adopt,
		.wal_room = HELP_WAL_ROOM };
	const struct commit_log_config config = { .journal = &cfg,
		.failed = failed,
		.arg = w };
	struct commit_log *log = NULL;
	char *why = NULL;
	int r = commit_log_open(&config, &log, &why);

	ck_assert_msg(r == 0, "%d, %s", r, why);
	return log;
}

static struct commit_log *open_in(const char *dir)
{
	return open_as(dir, false);
}

static struct commit_log *start_in(const char *dir)
{
	struct commit_log *log = open_in(dir);
	char *why = NULL;
	int r = commit_log_claim(log, &why);

	ck_assert_msg(r == 0, "%d, %s", r, why);
	return log;
}

static int commit(struct commit_log *log, unsigned number,
    enum commit_log_level level)
{
	struct journal_row row = help_row(number, BYTES);
	struct commit_log_mark mark;
	int r = commit_log_append(log, &row, 1, &mark);

	ck_assert_int_le(r, 0);
	if (r == 0)
		r = commit_log_wait(log, &mark, level);
	ck_assert((r == 0) == (row.lsn != 0));
	help_row_done(&row);
	return r;
}

static void fill(void)
{
	unsigned i;

	for (i = 0; i < FIRST; i++)
		ck_assert_int_eq(commit(the_log, i, COMMIT_LOG_DURABLE), 0);
}

static void setup(void)
{
	nr_failed = 0;
	w = journal_world_new();
	memfs_mkdirs(w->fs, SECOND);
	the_log = start_in(WORLD_DIR);
	fill();
}

static void teardown(void)
{
	commit_log_close(the_log);
	journal_world_free(w);
}

static void cut(void)
{
	memfs_die(w->fs, 0, -EIO);
	commit_log_close(the_log);
	world_power_loss(w, MEMFS_DATA_NONE);
	the_log = start_in(WORLD_DIR);
}

struct log_reader {
	uint64_t last;
	unsigned nr, number;
	bool has;
};

static int read_row(void *arg, const struct journal_row *row)
{
	struct log_reader *reading = arg;

	ck_assert_uint_gt(row->lsn, reading->last);
	reading->last = row->lsn;
	reading->nr++;
	reading->has = reading->has || row->pid == (int64_t)reading->number;
	return 0;
}

static bool has(struct commit_log *log, unsigned number)
{
	struct log_reader reading = { .number = number };

	ck_assert_int_eq(commit_log_read(log, 0, read_row, &reading), 0);
	return reading.has;
}

static int count_start(void *arg, const struct journal_start *start)
{
	(void)start;
	++*(unsigned *)arg;
	return 0;
}

static unsigned nr_starts(struct commit_log *log)
{
	unsigned nr = 0;

	ck_assert_int_eq(
	    journal_each_start(commit_log_journal(log), count_start, &nr), 0);
	return nr;
}

static struct suite_case faults = { .name = "faults", .seconds = 120 };

CASE(.name = "commit_log", .setup = setup, .teardown = teardown);

TEST(a_log_is_claimed_once_it_is_to_be_written)
{
	struct commit_log *second = open_in(SECOND);
	char *why;

	ck_assert_uint_eq(nr_starts(second), 0);
	ck_assert_int_eq(commit_log_claim(second, &why), 0);
	ck_assert_uint_eq(nr_starts(second), 1);
	ck_assert_uint_eq(journal_this_start(commit_log_journal(second)), 1);
	ck_assert_int_eq(commit(second, 0, COMMIT_LOG_DURABLE), 0);
	commit_log_close(second);
	second = open_in(SECOND);
	ck_assert_uint_eq(nr_starts(second), 1);
	ck_assert(has(second, 0));
	commit_log_close(second);
}

/* Sync N of a claim fails. The claim fails too, and the log is unchanged. */
static bool a_sync_of_a_claim_fails(unsigned long n)
{
	char *why = NULL;
	bool hit;
	int r;

	setup();
	commit_log_close(the_log);
	the_log = open_as(WORLD_DIR, true);
	world_arm(w, SYNC_FAILS, n, -EIO);
	r = commit_log_claim(the_log, &why);
	hit = world_disarm(w);
	ck_assert((r < 0) == hit);
	ck_assert((r < 0) == (why != NULL));
	free(why);
	commit_log_close(the_log);
	the_log = start_in(WORLD_DIR);
	ck_assert(has(the_log, FIRST - 1));
	teardown();
	return hit;
}

TEST(each_sync_of_a_claim_fails, .in = &faults)
{
	unsigned long n;

	for (n = 0; a_sync_of_a_claim_fails(n); n++)
		;
	ck_assert_uint_eq(n, 2);
}

TEST(two_logs_are_appended_to_and_then_waited_for)
{
	struct commit_log *logs[2] = { the_log, start_in(SECOND) };
	struct commit_log_mark marks[2];
	struct journal_row rows[2];
	unsigned long syncs;
	unsigned i;

	ck_assert_int_eq(commit(logs[1], 0, COMMIT_LOG_DURABLE), 0);
	syncs = sysvfs_wal_syncs(w->vfs);
	for (i = 0; i < 2; i++) {
		rows[i] = help_row(FIRST, BYTES);
		ck_assert_int_eq(
		    commit_log_append(logs[i], &rows[i], 1, &marks[i]), 0);
		ck_assert_uint_ne(rows[i].lsn, 0);
	}
	ck_assert_uint_eq(sysvfs_wal_syncs(w->vfs), syncs);
	for (i = 0; i < 2; i++) {
		ck_assert(journal_is_unflushed(commit_log_journal(logs[i])));
		ck_assert_int_eq(
		    commit_log_wait(logs[i], &marks[i], COMMIT_LOG_DURABLE), 0);
		ck_assert_uint_eq(sysvfs_wal_syncs(w->vfs), syncs + i + 1);
		ck_assert(has(logs[i], FIRST));
		help_row_done(&rows[i]);
	}
	commit_log_close(logs[1]);
}

TEST(rows_are_read_behind_an_lsn)
{
	struct log_reader all = { .number = 0 }, rest = { .number = 0 };

	ck_assert_int_eq(commit_log_read(the_log, 0, read_row, &all), 0);
	ck_assert_uint_eq(all.nr, FIRST);
	ck_assert_int_eq(
	    commit_log_read(the_log, all.last - 2, read_row, &rest), 0);
	ck_assert_uint_eq(rest.nr, 2);
	ck_assert_uint_eq(rest.last, all.last);
}

/* A local row costs no flush, and a power loss takes it. A wait for all rows
 * makes the row durable. */
TEST(local_rows_last_when_they_are_waited_for, .times = 2)
{
	unsigned long syncs = sysvfs_wal_syncs(w->vfs);

	ck_assert_int_eq(commit(the_log, FIRST, COMMIT_LOG_LOCAL), 0);
	ck_assert_uint_eq(sysvfs_wal_syncs(w->vfs), syncs);
	ck_assert(has(the_log, FIRST));
	if (_i == 1) {
		ck_assert_int_eq(
		    commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE), 0);
		ck_assert_uint_eq(sysvfs_wal_syncs(w->vfs), syncs + 1);
	}
	cut();
	ck_assert(has(the_log, FIRST) == (_i == 1));
}

/* A flush by another thread made the row durable before a later sync failed. */
TEST(a_durable_row_is_found_after_a_failed_sync)
{
	struct journal_row row = help_row(FIRST, BYTES);
	struct commit_log_mark mark;
	uint64_t lsn;

	ck_assert_int_eq(commit_log_append(the_log, &row, 1, &mark), 0);
	lsn = row.lsn;
	ck_assert_int_eq(commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE), 0);
	ck_assert_int_eq(commit(the_log, FIRST + 1, COMMIT_LOG_LOCAL), 0);
	world_arm(w, SYNC_FAILS, 0, -EIO);
	ck_assert_int_eq(commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE),
	    -EIO);
	ck_assert(world_disarm(w));
	ck_assert_int_eq(commit_log_wait(the_log, &mark, COMMIT_LOG_DURABLE),
	    0);
	ck_assert_uint_eq(row.lsn, lsn);
	help_row_done(&row);
}

/* A transaction has equal rows for two repositories, with separate LSNs. */
TEST(equal_rows_keep_their_lsns, .times = 2)
{
	struct journal_row rows[2] = { help_row(FIRST, BYTES) };
	struct commit_log_mark mark;
	uint64_t lsns[2];

	rows[1] = rows[0];
	rows[_i].repo++;
	ck_assert_int_eq(commit_log_append(the_log, rows, 2, &mark), 0);
	lsns[0] = rows[0].lsn;
	lsns[1] = rows[1].lsn;
	ck_assert_int_eq(commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE), 0);
	ck_assert_int_eq(commit(the_log, FIRST + 1, COMMIT_LOG_LOCAL), 0);
	world_arm(w, SYNC_FAILS, 0, -EIO);
	commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE);
	ck_assert(world_disarm(w));
	ck_assert_int_eq(commit_log_wait(the_log, &mark, COMMIT_LOG_DURABLE),
	    0);
	ck_assert_uint_eq(rows[0].lsn, lsns[0]);
	ck_assert_uint_eq(rows[1].lsn, lsns[1]);
	help_row_done(&rows[0]);
}

/* An equal row was appended before, and is durable. */
TEST(an_equal_row_is_not_taken_for_a_lost_one)
{
	ck_assert_int_eq(commit(the_log, FIRST, COMMIT_LOG_DURABLE), 0);
	world_arm(w, SYNC_FAILS, 0, -EIO);
	ck_assert_int_eq(commit(the_log, FIRST, COMMIT_LOG_DURABLE), -EIO);
	ck_assert(world_disarm(w));
}

/* Call N of the disk fails. The answer, the log and the log after a power loss
 * agree, and no new process is needed. */
static bool a_call_fails(enum fault fault, unsigned long n, int err,
    enum commit_log_level level, bool begins_anew)
{
	bool hit;
	int r;

	setup();
	if (begins_anew)
		ck_assert_int_eq(
		    journal_checkpoint(commit_log_journal(the_log), 0), 0);
	world_arm(w, fault, n, err);
	r = commit(the_log, FIRST, level);
	hit = world_disarm(w);
	ck_assert_int_le(r, 0);
	ck_assert_uint_eq(nr_failed, 0);
	ck_assert(has(the_log, FIRST) == (r == 0));
	ck_assert_int_eq(commit(the_log, FIRST + 1, COMMIT_LOG_DURABLE), 0);
	cut();
	ck_assert(has(the_log, FIRST) == (r == 0));
	ck_assert(has(the_log, FIRST + 1));
	teardown();
	return hit;
}

TEST(each_call_of_a_commit_fails, .times = 8 * NR_FAULTS, .in = &faults)
{
	static const int errs[] = { -EIO, -ENOSPC };
	enum fault fault = (enum fault)(_i / 8);
	enum commit_log_level level =
	    _i & 4 ? COMMIT_LOG_LOCAL : COMMIT_LOG_DURABLE;
	unsigned long n;

	for (n = 0; a_call_fails(fault, n, errs[_i & 1], level, (_i & 2) != 0);
	    n++)
		;
	/* A local row costs no sync, unless the WAL begins a new round. */
	if (fault != SYNC_FAILS || level == COMMIT_LOG_DURABLE || (_i & 2) != 0)
		ck_assert_uint_gt(n, 0);
}

/* The first wait opens the log again. The second wait looks for its rows in
 * this new log. */
TEST(two_appends_lose_one_sync, .in = &faults)
{
	struct commit_log_mark marks[2];
	struct journal_row rows[2];
	bool is_there[2];
	unsigned i;
	int r[2];

	setup();
	for (i = 0; i < 2; i++) {
		rows[i] = help_row(FIRST + i, BYTES);
		ck_assert_int_eq(
		    commit_log_append(the_log, &rows[i], 1, &marks[i]), 0);
	}
	world_arm(w, SYNC_FAILS, 0, -EIO);
	for (i = 0; i < 2; i++) {
		r[i] = commit_log_wait(the_log, &marks[i], COMMIT_LOG_DURABLE);
		ck_assert(r[i] == 0 || r[i] == -EIO);
		help_row_done(&rows[i]);
	}
	ck_assert(world_disarm(w));
	for (i = 0; i < 2; i++) {
		is_there[i] = has(the_log, FIRST + i);
		ck_assert(is_there[i] == (r[i] == 0));
	}
	cut();
	for (i = 0; i < 2; i++)
		ck_assert(has(the_log, FIRST + i) == is_there[i]);
	teardown();
}

/* A failed sync loses rows without a wait. The wait for all rows reports the
 * loss once. */
TEST(a_failed_wait_for_all_rows)
{
	ck_assert_int_eq(commit(the_log, FIRST, COMMIT_LOG_LOCAL), 0);
	world_arm(w, SYNC_FAILS, 0, -EIO);
	ck_assert_int_eq(commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE),
	    -EIO);
	ck_assert(world_disarm(w));
	ck_assert_int_eq(commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE), 0);
	ck_assert_int_eq(commit(the_log, FIRST + 1, COMMIT_LOG_DURABLE), 0);
}

/* From call N of a commit on, every call fails. When the disk is back, the log
 * can be opened again. */
static bool the_disk_dies(unsigned long n, bool *was_dead)
{
	bool hit;
	int r;

	setup();
	memfs_die(w->fs, n, -EIO);
	r = commit(the_log, FIRST, COMMIT_LOG_DURABLE);
	hit = memfs_was_hit(w->fs);
	ck_assert((r == JOURNAL_UNKNOWN) == (nr_failed == 1));
	if (r == JOURNAL_UNKNOWN) {
		*was_dead = true;
		ck_assert_int_eq(commit_log_mend(the_log), JOURNAL_UNKNOWN);
	}
	memfs_fail_none(w->fs);
	ck_assert_int_eq(commit_log_mend(the_log), 0);
	ck_assert_int_eq(commit(the_log, FIRST + 1, COMMIT_LOG_DURABLE), 0);
	if (r != JOURNAL_UNKNOWN)
		ck_assert(has(the_log, FIRST) == (r == 0));
	teardown();
	return hit;
}

TEST(a_disk_that_stays_away_makes_the_log_dead, .in = &faults)
{
	bool was_dead = false;
	unsigned long n;

	for (n = 0; the_disk_dies(n, &was_dead); n++)
		;
	ck_assert(was_dead);
}
