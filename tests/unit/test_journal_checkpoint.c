/*
 * Proves the cost and the time of the journal's commits and checkpoints, call
 * by call on a disk in memory. A commit costs one sync, or two when the WAL
 * begins a new round, and no sync of the database. No checkpoint starts between
 * a complete checkpoint and the end of the next commit. A WAL beyond its bound
 * begins a new round although commits never stop.
 */
#include <pthread.h>
#include <string.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/memfs.h"
#include "tests/lib/suite.h"
#include "tests/lib/sysvfs.h"

#define DIR_NAME "/state"
#define VFS_NAME "checkpoint"
#define NO_BOUND UINT64_MAX

static struct memfs *fs;
static struct sys table; /* memfs's, with hooks */
static struct sysvfs *vfs;
static struct journal *j;
static unsigned next_row;

/* Called before every sync. */
static void (*before_sync)(void);

static int hooked_fdatasync(const struct sys *sys, int fd)
{
	(void)sys;
	if (before_sync != NULL)
		before_sync();
	return SYS(memfs_sys(fs), fdatasync, fd);
}

static void setup(void)
{
	fs = memfs_new();
	memfs_mkdirs(fs, DIR_NAME);
	table = *memfs_sys(fs);
	table.fdatasync = hooked_fdatasync;
	vfs = sysvfs_new(VFS_NAME, &table);
	j = help_open(&table, DIR_NAME, VFS_NAME);
	next_row = 0;
	before_sync = NULL;
}

static void teardown(void)
{
	before_sync = NULL;
	ck_assert_int_eq(journal_close(j), 0);
	sysvfs_free(vfs);
	memfs_free(fs);
}

static void commit(unsigned nr)
{
	ck_assert_int_eq(help_commit(j, next_row, nr, 100), 0);
	next_row += nr;
}

static struct journal_stats stats(void)
{
	struct journal_stats now;

	journal_stats(j, &now);
	return now;
}

static void assert_all_there(void)
{
	struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };

	before_sync = NULL;
	ck_assert_uint_eq(help_scan(j, NULL, 0), next_row);
	memfs_die(fs, 0, -5);
	journal_close(j);
	memfs_fail_none(fs);
	memfs_power_loss(fs, &nothing);
	j = help_open(&table, DIR_NAME, VFS_NAME);
	ck_assert_uint_eq(help_scan(j, NULL, 0), next_row);
}

/* ---- the price ---- */

CASE(.setup = setup, .teardown = teardown);

TEST(a_commit_costs_one_sync)
{
	unsigned long wal = sysvfs_wal_syncs(vfs), db = sysvfs_db_syncs(vfs);
	struct journal_stats before = stats(), after;
	unsigned i;

	for (i = 0; i < 100; i++)
		commit(1 + i % 7);
	ck_assert_uint_eq(sysvfs_wal_syncs(vfs) - wal, 100);
	ck_assert_uint_eq(sysvfs_db_syncs(vfs) - db, 0);
	after = stats();
	ck_assert_uint_eq(after.commits - before.commits, 100);
	ck_assert_uint_eq(after.flushes - before.flushes, 100);
	ck_assert_uint_gt(after.wal_bytes, 100 * 2 * 4096);
	ck_assert_uint_lt(after.wal_bytes, 100 * 6 * 4200);
}

TEST(a_wal_that_begins_anew_costs_one_more)
{
	unsigned long wal;
	struct journal_stats before, after;
	unsigned i;

	for (i = 0; i < 10; i++) {
		commit(1 + 3 * i);
		ck_assert_int_eq(journal_checkpoint(j, NO_BOUND), 0);
		wal = sysvfs_wal_syncs(vfs);
		before = stats();
		commit(1);
		ck_assert_uint_eq(sysvfs_wal_syncs(vfs) - wal, 2);
		after = stats();
		ck_assert_uint_eq(after.flushes - before.flushes, 2);
		ck_assert_uint_lt(after.wal_bytes, 6 * 4200);
	}
	assert_all_there();
}

static int64_t stats_flushes_of_100(bool with_forget)
{
	struct journal_stats before = stats();
	unsigned i;

	for (i = 0; i < 100; i++) {
		if (with_forget)
			journal_forget(j, journal_last_lsn(j), false);
		commit(1);
	}
	return (int64_t)(stats().flushes - before.flushes);
}

TEST(forgetting_costs_no_sync_of_its_own)
{
	ck_assert_int_eq(stats_flushes_of_100(false), 100);
	ck_assert_int_eq(stats_flushes_of_100(true), 100);
}

/* ---- the rule ---- */

TEST(none_starts_after_one_that_caught_up)
{
	uint64_t started = stats().checkpoints;
	unsigned i;

	commit(3);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	ck_assert_uint_eq(stats().checkpoints, started + 1);
	commit(1);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	ck_assert_uint_eq(stats().checkpoints, started + 2);
}

/* A failed commit does not count: it may have begun a new round of the WAL. */
TEST(a_failed_commit_is_not_the_next_commit)
{
	uint64_t started;

	commit(3);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	started = stats().checkpoints;
	memfs_fail_call(fs, MEMFS_PWRITE, 2, -28);
	ck_assert_int_eq(help_commit(j, 500, 1, 100), -28);
	memfs_fail_none(fs);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	ck_assert_uint_eq(stats().checkpoints, started);
	commit(1);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	ck_assert_uint_eq(stats().checkpoints, started + 1);
	assert_all_there();
}

/* The thread of the commit waits in its sync until the test opens the gate. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static bool waits, may_go;

static void wait_at_gate(void)
{
	pthread_mutex_lock(&gate);
	waits = true;
	pthread_cond_broadcast(&moved);
	while (!may_go)
		pthread_cond_wait(&moved, &gate);
	pthread_mutex_unlock(&gate);
}

static void *commit_one(void *arg)
{
	commit(1);
	return arg;
}

TEST(none_starts_before_the_next_commit_has_ended)
{
	pthread_t thread;
	uint64_t started;

	commit(3);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	started = stats().checkpoints;
	waits = may_go = false;
	before_sync = wait_at_gate;
	pthread_create(&thread, NULL, commit_one, NULL);
	pthread_mutex_lock(&gate);
	while (!waits)
		pthread_cond_wait(&moved, &gate);
	pthread_mutex_unlock(&gate);

	ck_assert_int_eq(journal_checkpoint(j, NO_BOUND), 0);
	ck_assert_uint_eq(stats().checkpoints, started);

	pthread_mutex_lock(&gate);
	may_go = true;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&gate);
	pthread_join(thread, NULL);
	before_sync = NULL;
	ck_assert_int_eq(journal_checkpoint(j, NO_BOUND), 0);
	ck_assert_uint_eq(stats().checkpoints, started + 1);
	assert_all_there();
}

/* ---- the bound ---- */

/* A commit arrives in the middle of every sync of the next checkpoints. */
static unsigned commits_to_land;

static void land_a_commit(void)
{
	void (*hook)(void) = before_sync;

	if (commits_to_land == 0)
		return;
	commits_to_land--;
	before_sync = NULL;
	commit(1);
	before_sync = hook;
}

TEST(a_checkpoint_that_was_overtaken_may_be_followed_by_another)
{
	uint64_t started = stats().checkpoints, bytes;

	commit(3);
	commits_to_land = 1;
	before_sync = land_a_commit;
	ck_assert_int_eq(journal_checkpoint(j, NO_BOUND), 0);
	ck_assert_uint_eq(commits_to_land, 0);
	ck_assert_int_eq(journal_checkpoint(j, NO_BOUND), 0);
	ck_assert_uint_eq(stats().checkpoints, started + 2);
	bytes = stats().wal_bytes;
	commit(1);
	ck_assert_uint_lt(stats().wal_bytes, bytes);
	assert_all_there();
}

/* Commits overtake every round NR times. */
static uint64_t largest_wal(unsigned nr, uint64_t bound)
{
	uint64_t largest = 0;
	unsigned i;

	before_sync = land_a_commit;
	for (i = 0; i < 50; i++) {
		commit(1);
		commits_to_land = nr;
		ck_assert_int_eq(journal_checkpoint(j, bound), 0);
		commits_to_land = 0;
		if (stats().wal_bytes > largest)
			largest = stats().wal_bytes;
	}
	return largest;
}

#define BOUND (100 * 1000)

TEST(overtaken_each_time_the_wal_grows)
{
	ck_assert_uint_gt(largest_wal(1, NO_BOUND), 3 * BOUND);
	assert_all_there();
}

TEST(beyond_its_bound_the_wal_begins_anew)
{
	/* The sync of the pass beside the commits, and the sync of the database
	 * before the pass for which the committer waits. */
	ck_assert_uint_lt(largest_wal(2, BOUND), 2 * BOUND);
	assert_all_there();
}

/* While much is copied, much arrives. The copy is repeated beside the commits
 * before the committer has to wait. */
static void land_a_large_commit(void)
{
	if (commits_to_land == 0)
		return;
	commits_to_land--;
	before_sync = NULL;
	ck_assert_int_eq(help_commit(j, next_row++, 1, 4000000), 0);
	before_sync = land_a_large_commit;
}

TEST(the_committer_waits_for_little)
{
	uint64_t started = stats().checkpoints;

	commit(1);
	before_sync = land_a_large_commit;
	/* A pass and a sync of the database are overtaken, twice. */
	commits_to_land = 4;
	ck_assert_int_eq(journal_checkpoint(j, 1), 0);
	ck_assert_uint_eq(commits_to_land, 0);
	ck_assert_uint_eq(stats().checkpoints, started + 3);
	commit(1);
	ck_assert_uint_lt(stats().wal_bytes, 6 * 4200);
	assert_all_there();
}

/* In the middle of a look-up, which reads the old state of the WAL. */
static int read_on(void *arg, const struct journal_row *row)
{
	uint64_t *bytes = arg;

	(void)row;
	*bytes = stats().wal_bytes;
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	commit(1);
	ck_assert_uint_gt(stats().wal_bytes, *bytes);
	return 0;
}

TEST(a_reader_only_delays_it)
{
	struct journal_row row = help_row(1, 100);
	struct journal_reader *reader;
	uint64_t bytes = 0;

	commit(5);
	commit(1);
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	ck_assert_int_eq(
	    journal_lookup(reader, HELP_UID, &row.txid, read_on, &bytes), 0);
	ck_assert_uint_gt(bytes, 0);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	commit(1);
	ck_assert_uint_lt(stats().wal_bytes, bytes);
	journal_reader_close(reader);
	help_row_done(&row);
	assert_all_there();
}
