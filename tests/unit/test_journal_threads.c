/*
 * Proves that the journal's threads work together, on a real file system with
 * SQLite's own VFS, for a few seconds: commits and checkpoints without a pause,
 * look-ups, forgetting. Afterwards the database is sound, every acknowledged
 * row is there once, look-ups found every row as soon as it was acknowledged,
 * and the WAL begins a new round once nobody reads. The test could show a
 * checkpoint that starts at a wrong moment ("WAL-reset bug"). On a real disk
 * this is rare, so test_journal_checkpoint.c tests the rule.
 *
 * A second run reopens the journal again and again under the same load. A call
 * may then return JOURNAL_UNKNOWN, and no acknowledged row is lost.
 *
 * REFD_TEST_SECONDS makes the first run longer.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define SECONDS   4
#define WAL_BOUND (200 * 1000)
#define REOPENS   100

static struct journal *j;
static atomic_bool stop;
static atomic_uint acknowledged;
static bool reopening; /* so a call may say JOURNAL_UNKNOWN */
static unsigned unknown;
static atomic_uint checkpoints_done;
static uint64_t largest_wal;

static void assert_done(int r)
{
	ck_assert_msg(r == 0 || (reopening && r == JOURNAL_UNKNOWN), "%d", r);
}

/* No other row gets the number of an unknown row. */
static void *commit_on(void *arg)
{
	unsigned row = 0, nr;
	int r;

	while (!stop) {
		nr = 1 + row % 3;
		r = help_commit(j, row, nr, 60 + row % 400);
		assert_done(r);
		row += nr;
		if (r == 0)
			atomic_store(&acknowledged, row);
		else
			unknown += nr;
	}
	return arg;
}

static void *checkpoint_on(void *arg)
{
	struct journal_stats stats;

	while (!stop) {
		assert_done(journal_checkpoint(j, WAL_BOUND));
		journal_stats(j, &stats);
		if (stats.wal_bytes > largest_wal)
			largest_wal = stats.wal_bytes;
		checkpoints_done++;
	}
	return arg;
}

static int is_found(void *arg, const struct journal_row *row)
{
	(void)row;
	*(bool *)arg = true;
	return 0;
}

static void *look_up_on(void *arg)
{
	struct journal_reader *reader;
	struct journal_row row;
	unsigned nr, turn = 0;
	bool found;
	int r;

	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	while (!stop) {
		nr = atomic_load(&acknowledged);
		if (nr == 0)
			continue;
		/* The last row, or any row if no row can be unknown. */
		row =
		    help_row(turn++ % 2 && !reopening ? turn % nr : nr - 1, 16);
		found = false;
		r = journal_lookup(reader, HELP_UID, &row.txid, is_found,
		    &found);
		assert_done(r);
		ck_assert(found || r != 0);
		help_row_done(&row);
	}
	journal_reader_close(reader);
	return arg;
}

static void *forget_on(void *arg)
{
	unsigned i = 0;

	while (!stop) {
		assert_done(
		    journal_forget(j, journal_last_lsn(j), i++ % 64 == 0));
		ck_assert_uint_le(journal_forgotten(j), journal_last_lsn(j));
	}
	return arg;
}

/* Runs until the time is over, or longer on a busy machine, until enough has
 * happened. */
static void let_run(void)
{
	const char *set = getenv("REFD_TEST_SECONDS");
	struct timespec end, now;
	time_t seconds = set != NULL ? atoi(set) : SECONDS;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	do {
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	while (acknowledged <= 100 || checkpoints_done <= 10)
		sched_yield();
	stop = true;
}

/* ROWS rows are there, each only once. */
static void assert_sound(size_t rows)
{
	ck_assert_int_eq(help_ask("SELECT count(*) FROM pragma_quick_check"
				  " WHERE quick_check <> 'ok'"),
	    0);
	ck_assert_int_eq(help_ask("SELECT count(*) FROM record NOT INDEXED"),
	    (int64_t)rows);
	ck_assert_int_eq(help_ask("SELECT count(DISTINCT pid)"
				  " FROM record NOT INDEXED"),
	    (int64_t)rows);
}

static pthread_t threads[4];

static void start_all(void)
{
	void *(*const work[])(
	    void *) = { commit_on, checkpoint_on, look_up_on, forget_on };
	size_t i;

	j = help_open_here();
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(
		    pthread_create(&threads[i], NULL, work[i], NULL), 0);
}

static void join_all(void)
{
	size_t i;

	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void commit_one(void)
{
	ck_assert_int_eq(help_commit(j, acknowledged, 1, 60), 0);
	acknowledged++;
}

/* The growth of the WAL depends on when a reader gets a processor. If the last
 * checkpoint met a commit that began the WAL anew, it counts as complete until
 * the next commit, so a commit comes first. */
static void begins_anew(void)
{
	struct journal_stats stats;

	commit_one();
	ck_assert_int_eq(journal_checkpoint(j, WAL_BOUND), 0);
	commit_one();
	journal_stats(j, &stats);
	ck_assert_uint_le(stats.wal_bytes, WAL_BOUND);
}

/* REFD_TEST_SECONDS decides how long a test takes. */
CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = -1);

TEST(all_at_once)
{
	struct journal_stats stats;

	start_all();
	let_run();
	join_all();
	ck_assert_uint_eq(help_scan(j, NULL, 0), acknowledged);
	begins_anew();
	journal_stats(j, &stats);
	ck_assert_int_eq(journal_close(j), 0);
	assert_sound(acknowledged);
	if (getenv("REFD_TEST_SECONDS") != NULL)
		printf("%u rows, %llu commits, %llu flushes, %llu checkpoints"
		       " started, largest WAL %llu\n",
		    acknowledged, (unsigned long long)stats.commits,
		    (unsigned long long)stats.flushes,
		    (unsigned long long)stats.checkpoints,
		    (unsigned long long)largest_wal);
}

TEST(and_opened_again_and_again)
{
	size_t rows;
	int i;

	reopening = true;
	start_all();
	for (i = 0; i < REOPENS; i++) {
		unsigned before = acknowledged;

		help_reopen(j);
		while (acknowledged < before + 3)
			sched_yield();
	}
	stop = true;
	join_all();
	ck_assert_uint_gt(acknowledged, REOPENS);
	rows = help_scan(j, NULL, 0);
	ck_assert_uint_le(rows, acknowledged + unknown);
	ck_assert_uint_ge(rows + unknown, acknowledged);
	ck_assert_int_eq(journal_close(j), 0);
	assert_sound(rows);
}
