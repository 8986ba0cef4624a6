/*
 * Proves that the journal avoids SQLite's "WAL-reset bug"
 * (https://www.sqlite.org/wal.html). The test provokes the race: one thread
 * commits, another thread checkpoints without a pause, both on one CPU, and
 * nothing is ever synced. The committer has the higher priority and wakes at
 * random moments, so the committer interrupts the checkpointer between any two
 * instructions. Afterwards the journal is sound, and every committed row is
 * there exactly once.
 *
 * A second test shows that the method can find the bug. A plain database under
 * the same load, whose checkpoints start at any time, soon loses rows or has
 * broken pages, with every SQLite before 3.51.3.
 *
 * REFD_TEST_SECONDS makes the first test longer. Only with this variable the
 * second test runs, for two seconds to half a minute, on a busy machine for
 * some minutes.
 */
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define SECONDS         3
#define CONTROL_SECONDS 600
#define FIXED_IN        3051003
#define SLEEP_MAX_NS    40000
#define LOOK_EVERY      5000
#define WAL_PAGES_MAX   65536
#define NO_BOUND        UINT64_MAX

/* Nothing waits for the disk: SQLite calls these functions to sync. */
int fsync(int fd)
{
	(void)fd;
	return 0;
}

int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

/* A database: commits one row at a time, and checkpoints. */
struct subject {
	bool (*commit)(unsigned row); /* false: look, it is broken */
	void (*checkpoint)(void);
	bool (*is_sound)(unsigned rows);
	bool (*is_enough)(unsigned rows); /* whatever the time */
};

static const struct subject *subject;
static atomic_bool stop;
static atomic_ulong checkpoints;

static void *checkpoint_on(void *arg)
{
	while (!stop) {
		subject->checkpoint();
		checkpoints++;
	}
	return arg;
}

/* Binds the whole process to one CPU, and gives this thread priority over all
 * other threads there. False: not permitted, and the race is rare. musl's
 * sched_setscheduler(3) does nothing. */
static bool contend(void)
{
	struct sched_param first = { .sched_priority = 1 };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0 &&
	    syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK,
		&first) == 0;
}

static void sleep_a_little(unsigned *seed)
{
	struct timespec ts = { 0, rand_r(seed) % SLEEP_MAX_NS };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Returns the number of rows that were committed until the database was found
 * unsound, or until the time was over and the load was enough. *SOUND is true
 * in the second case. */
static unsigned run(const struct subject *s, time_t seconds, bool *sound)
{
	unsigned rows = 0, seed = 1;
	time_t end = now() + seconds;
	pthread_t thread;

	subject = s;
	/* The other thread gets the normal priority. */
	ck_assert_int_eq(pthread_create(&thread, NULL, checkpoint_on, NULL), 0);
	*sound = true;
	while (*sound && (now() < end || !s->is_enough(rows))) {
		sleep_a_little(&seed);
		*sound = s->commit(rows);
		rows += *sound;
		if (rows % LOOK_EVERY == 0)
			*sound = *sound && s->is_sound(rows);
	}
	stop = true;
	pthread_join(thread, NULL);
	*sound = *sound && s->is_sound(rows);
	return rows;
}

static bool answers(sqlite3 *db, const char *sql, const char *wanted)
{
	const char *got;
	sqlite3_stmt *s;
	bool does = false;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		return false;
	if (sqlite3_step(s) == SQLITE_ROW) {
		got = (const char *)sqlite3_column_text(s, 0);
		does = got != NULL && strcmp(got, wanted) == 0;
	}
	sqlite3_finalize(s);
	return does;
}

/* ---- the journal ---- */

static struct journal *j;

static bool journal_commits(unsigned row)
{
	ck_assert_int_eq(help_commit(j, row, 1, 30), 0);
	return true;
}

static void journal_checkpoints(void)
{
	ck_assert_int_eq(journal_checkpoint(j, NO_BOUND), 0);
}

static bool journal_is_sound(unsigned rows)
{
	char path[4200], count[24];
	sqlite3 *db;
	bool is_sound;

	snprintf(path, sizeof(path), "%s/journal.db", tmp_root);
	snprintf(count, sizeof(count), "%u", rows);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	is_sound = answers(db, "PRAGMA quick_check", "ok") &&
	    answers(db, "SELECT count(DISTINCT pid) FROM record NOT INDEXED",
		count) &&
	    answers(db, "SELECT count(*) FROM record", count);
	sqlite3_close(db);
	return is_sound;
}

/* The WAL did begin a new round all the time. A busy machine may need more
 * time. */
static bool journal_had_enough(unsigned rows)
{
	struct journal_stats stats;

	journal_stats(j, &stats);
	return rows > 100 && stats.checkpoints > 100;
}

static int seconds(void)
{
	const char *set = getenv("REFD_TEST_SECONDS");

	return set != NULL ? atoi(set) : SECONDS;
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown,
    .seconds = 60 + seconds() + CONTROL_SECONDS);

TEST(the_journal_stays_sound)
{
	const struct subject s = { journal_commits, journal_checkpoints,
		journal_is_sound, journal_had_enough };
	const char *set = getenv("REFD_TEST_SECONDS");
	struct journal_stats stats;
	unsigned rows;
	bool sound;

	j = help_open_here();
	if (!contend() && set == NULL)
		suite_skip(__func__, "without priorities the race is rare");
	rows = run(&s, seconds(), &sound);
	ck_assert_msg(sound, "after %u commits, %lu checkpoints", rows,
	    (unsigned long)checkpoints);
	journal_stats(j, &stats);
	if (set != NULL)
		printf("%u commits, %llu checkpoints of %lu asked for\n", rows,
		    (unsigned long long)stats.checkpoints,
		    (unsigned long)checkpoints);
	ck_assert_int_eq(journal_close(j), 0);
}

/* ---- a plain database ---- */

static sqlite3 *db, *checkpointer;
static sqlite3_stmt *insert;

static sqlite3 *plain_open(void)
{
	char path[4200];
	sqlite3 *opened;

	snprintf(path, sizeof(path), "%s/plain.db", tmp_root);
	ck_assert_int_eq(sqlite3_open(path, &opened), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(opened,
			     "PRAGMA journal_mode=WAL;"
			     "PRAGMA wal_autocheckpoint=0",
			     NULL, NULL, NULL),
	    SQLITE_OK);
	return opened;
}

static int pages_of_wal;

static int note_pages(void *arg, sqlite3 *of, const char *name, int pages)
{
	(void)arg, (void)of, (void)name;
	pages_of_wal = pages;
	return SQLITE_OK;
}

static bool plain_commits(unsigned row)
{
	unsigned seed = row;
	int rc;

	/* On a busy machine the checkpoints starve, and the WAL would fill the
	 * disk. */
	if (pages_of_wal > WAL_PAGES_MAX)
		usleep(10000);
	/* The insert may have interrupted a thread that holds a lock. */
	while ((rc = sqlite3_step(insert)) == SQLITE_BUSY) {
		sqlite3_reset(insert);
		sleep_a_little(&seed);
	}
	sqlite3_reset(insert);
	return rc == SQLITE_DONE;
}

static void plain_checkpoints(void)
{
	sqlite3_wal_checkpoint_v2(checkpointer, "main",
	    SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

static bool plain_is_sound(unsigned rows)
{
	char count[24];

	snprintf(count, sizeof(count), "%u", rows);
	return answers(db, "PRAGMA quick_check", "ok") &&
	    answers(db, "SELECT count(*) FROM t NOT INDEXED", count);
}

static bool plain_had_enough(unsigned rows)
{
	(void)rows;
	return true;
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown,
    .seconds = 60 + seconds() + CONTROL_SECONDS,
    .is_left_out = getenv("REFD_TEST_SECONDS") == NULL);

TEST(without_the_rule_a_database_breaks)
{
	const struct subject s = { plain_commits, plain_checkpoints,
		plain_is_sound, plain_had_enough };
	unsigned rows;
	bool sound;

	if (sqlite3_libversion_number() >= FIXED_IN) {
		suite_skip(__func__, "this SQLite does not have the bug");
		return;
	}
	if (!contend()) {
		suite_skip(__func__, "without priorities the race is rare");
		return;
	}
	db = plain_open();
	sqlite3_wal_hook(db, note_pages, NULL);
	ck_assert_int_eq(sqlite3_exec(db,
			     "CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB);"
			     "CREATE INDEX i ON t(b)",
			     NULL, NULL, NULL),
	    SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(db,
			     "INSERT INTO t(b) VALUES(randomblob(30))", -1,
			     &insert, NULL),
	    SQLITE_OK);
	checkpointer = plain_open();
	rows = run(&s, CONTROL_SECONDS, &sound);
	ck_assert_msg(!sound, "still sound after %u commits", rows);
	printf("unsound after %u commits, %lu checkpoints\n", rows,
	    (unsigned long)checkpoints);
	sqlite3_finalize(insert);
	sqlite3_close(db);
	sqlite3_close(checkpointer);
}
