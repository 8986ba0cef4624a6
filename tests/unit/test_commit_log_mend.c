/*
 * Proves that reopening a broken commit log is safe for other callers, on a
 * disk that fails and forgets (memfs.h).
 *
 * The log reports a call, a reopening or a flush that hangs. A sound log stays
 * open. Another row never passes for a lost row. If a log breaks again before a
 * wait has looked for its rows, the log is reopened once more, but not for
 * ever. A wait learns whether a deferred row was removed.
 *
 * Several threads use the log and the rest of its journal while syncs fail. No
 * wait returns 0 for a row that a power loss takes, and no failed call leaves
 * its row behind.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/journal_world.h"
#include "tests/lib/suite.h"

#define WRITERS 3
#define ROWS    400 /* per writer */
#define ALL     (WRITERS * ROWS)
#define BYTES   200

static struct journal_world *w;
static struct commit_log *the_log;
static atomic_uint nr_failed, nr_over;
static void (*on_failure)(void);

static void failed(void *arg, const char *why)
{
	(void)arg;
	(void)why;
	nr_failed++;
	if (on_failure != NULL)
		on_failure();
}

static void start(void)
{
	const struct journal_config cfg = { .sys = &w->sys,
		.dir = WORLD_DIR,
		.vfs = WORLD_VFS,
		.boot_id = HELP_BOOT,
		.wal_room = HELP_WAL_ROOM };
	const struct commit_log_config config = { .journal = &cfg,
		.failed = failed };
	char *why = NULL;

	ck_assert_int_eq(commit_log_open(&config, &the_log, &why), 0);
	ck_assert_int_eq(commit_log_claim(the_log, &why), 0);
}

static void setup(void)
{
	nr_over = nr_failed = 0;
	w = journal_world_new();
	/* No write is torn here, and the count of writes is not atomic. */
	w->sys.pwrite = memfs_sys(w->fs)->pwrite;
	start();
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
	start();
}

/* ---- one thread ---- */

static int64_t clock_ns, stuck_ns;
static unsigned nr_breaks;
static bool was_dropped, looks;

/* The commit's sync fails, and nobody opens the log again. */
static void break_log(void)
{
	world_arm(w, SYNC_FAILS, 0, -EIO);
	ck_assert_int_eq(help_commit(commit_log_journal(the_log), 1, 1, BYTES),
	    JOURNAL_UNKNOWN);
	ck_assert(world_disarm(w));
}

static int drop_cache(const struct sys *sys, int fd)
{
	(void)sys;
	was_dropped = false;
	clock_ns += 1000;
	if (looks)
		stuck_ns = commit_log_stuck_ns(the_log);
	was_dropped = true;
	return SYS(memfs_sys(w->fs), drop_cache, fd);
}

/* The first look at the clock after a reopening breaks the log. */
static int64_t now_mono(const struct sys *sys)
{
	(void)sys;
	if (was_dropped && nr_breaks > 0) {
		was_dropped = false;
		nr_breaks--;
		break_log();
	}
	return clock_ns;
}

static void watch(unsigned breaks)
{
	was_dropped = looks = false;
	nr_breaks = breaks;
	w->sys.drop_cache = drop_cache;
	w->sys.now_mono = now_mono;
}

static int commit_row(void)
{
	struct journal_row row = help_row(0, BYTES);
	struct commit_log_mark mark;
	int r = commit_log_append(the_log, &row, 1, &mark);

	ck_assert_int_eq(r, 0);
	r = commit_log_wait(the_log, &mark, COMMIT_LOG_DURABLE);
	ck_assert((r == 0) == (row.lsn != 0));
	help_row_done(&row);
	return r;
}

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(a_mend_that_hangs_is_told_of)
{
	watch(0);
	looks = true;
	break_log();
	ck_assert_int_eq(commit_log_mend(the_log), 0);
	ck_assert_int_ge(stuck_ns, 1000);
	ck_assert_int_eq(commit_log_stuck_ns(the_log), 0);
}

/* A log that another thread has mended stays open. */
/* A second call begins in the first. */
static void hang(void)
{
	clock_ns += 1000;
	stuck_ns = commit_log_stuck_ns(the_log);
	if (nr_failed == 1)
		ck_assert_int_eq(commit_log_mend(the_log), JOURNAL_UNKNOWN);
}

TEST(a_call_that_hangs_is_told_of_beside_a_later_one)
{
	break_log();
	on_failure = hang;
	w->sys.now_mono = now_mono;
	memfs_die(w->fs, 0, -EIO);
	ck_assert_int_eq(commit_log_mend(the_log), JOURNAL_UNKNOWN);
	ck_assert_int_eq(stuck_ns, 2000);
	ck_assert_int_eq(commit_log_stuck_ns(the_log), 0);
	memfs_fail_none(w->fs);
}

TEST(a_log_that_is_not_broken_stays_open)
{
	watch(0);
	ck_assert_int_eq(commit_log_mend(the_log), 0);
	ck_assert(!was_dropped);
	break_log();
	ck_assert_int_eq(commit_log_mend(the_log), 0);
	ck_assert(was_dropped);
}

/* During a flush of one second, a second append and its wait return at once. */
static int slow_fdatasync(const struct sys *sys, int fd)
{
	struct journal_row row = help_row(2, BYTES);
	struct commit_log_mark mark;

	(void)sys;
	w->sys.fdatasync = memfs_sys(w->fs)->fdatasync;
	clock_ns += 1000000000;
	ck_assert_int_eq(commit_log_append(the_log, &row, 1, &mark), 0);
	ck_assert_int_eq(commit_log_wait(the_log, &mark, COMMIT_LOG_LOCAL), 0);
	help_row_done(&row);
	stuck_ns = commit_log_stuck_ns(the_log);
	return SYS(memfs_sys(w->fs), fdatasync, fd);
}

TEST(a_flush_that_hangs_is_told_of_beside_others)
{
	watch(0);
	w->sys.fdatasync = slow_fdatasync;
	ck_assert_int_eq(commit_row(), 0);
	ck_assert_int_ge(stuck_ns, 1000000000);
	ck_assert_int_eq(commit_log_stuck_ns(the_log), 0);
}

/* A failed sync loses a row, the log is opened again, and then another thread
 * writes a row that is almost the same. */
TEST(a_later_row_is_not_taken_for_a_lost_one, .times = 5)
{
	struct journal_row lost = help_row(3, BYTES), later = lost;
	uint8_t body[BYTES];
	struct commit_log_mark mark, later_mark;
	uint64_t lsn;

	memcpy(body, lost.body, BYTES);
	later.body = body;
	if (_i == 0)
		body[BYTES - 1]++;
	else if (_i == 1)
		later.token--;
	else if (_i == 2)
		later.time_us++;
	else if (_i == 3)
		later.txid.bytes[15]++;
	else
		later.len--;
	ck_assert_int_eq(commit_row(), 0);
	ck_assert_int_eq(commit_log_append(the_log, &lost, 1, &mark), 0);
	lsn = lost.lsn;
	break_log();
	ck_assert_int_eq(commit_log_mend(the_log), 0);
	ck_assert_int_eq(commit_log_append(the_log, &later, 1, &later_mark), 0);
	ck_assert_int_eq(
	    commit_log_wait(the_log, &later_mark, COMMIT_LOG_DURABLE), 0);
	/* Somebody may remember the number of the lost row. */
	ck_assert_uint_gt(later.lsn, lsn);
	ck_assert_int_eq(commit_log_wait(the_log, &mark, COMMIT_LOG_DURABLE),
	    -EIO);
	help_row_done(&lost);
}

/* The row was lost with the first sync. */
TEST(a_log_breaks_again_before_rows_are_looked_for, .times = 2)
{
	ck_assert_int_eq(commit_row(), 0);
	break_log();
	watch(_i == 0 ? 2 : 100);
	ck_assert_int_eq(commit_row(), _i == 0 ? -EIO : JOURNAL_UNKNOWN);
	ck_assert_uint_eq(nr_failed, _i);
	nr_breaks = 0;
	ck_assert_int_eq(commit_log_mend(the_log), 0);
	ck_assert_int_eq(commit_row(), 0);
}

/* ---- threads ---- */

static struct written {
	int r;
	uint64_t lsn;
	bool is_durable;
} written[ALL];

static void *write_rows(void *arg)
{
	unsigned i, number, writer = (unsigned)(uintptr_t)arg;
	enum commit_log_level level;
	struct commit_log_mark mark;
	struct journal_row row;
	struct written *done;

	for (i = 0; i < ROWS; i++) {
		number = i * WRITERS + writer;
		done = &written[number];
		row = help_row(number, BYTES);
		level = i % 3 == 0 ? COMMIT_LOG_LOCAL : COMMIT_LOG_DURABLE;
		done->is_durable = level == COMMIT_LOG_DURABLE;
		done->r = commit_log_append(the_log, &row, 1, &mark);
		if (done->r == 0)
			done->r = commit_log_wait(the_log, &mark, level);
		done->lsn = row.lsn;
		help_row_done(&row);
	}
	nr_over++;
	return NULL;
}

static bool is_over(void)
{
	return nr_over == WRITERS;
}

static int pass(void *arg, const struct journal_row *row)
{
	(void)arg;
	(void)row;
	return 0;
}

static int pass_repo(void *arg, const struct journal_repo *repo)
{
	(void)arg;
	(void)repo;
	return 0;
}

static void *look_up(void *arg)
{
	struct journal *j = commit_log_journal(the_log);
	struct journal_reader *reader;
	struct refd_txid newest;
	uint8_t uuid[16];
	unsigned i;

	memcpy(uuid, journal_uuid(j), sizeof(uuid));
	while (!is_over()) {
		ck_assert_mem_eq(journal_uuid(j), uuid, sizeof(uuid));
		if (journal_reader_open(j, &reader) != 0)
			continue;
		for (i = 0; i < 20; i++) {
			journal_newest_id(reader, &newest);
			journal_lookup(reader, -1, &newest, pass, NULL);
			journal_read(reader, 0, 100, true, 10, pass, NULL);
		}
		journal_reader_close(reader);
	}
	return arg;
}

static void *register_repos(void *arg)
{
	struct journal *j = commit_log_journal(the_log);
	struct journal_repo repo = { .path = (char[]){ "/r" } };
	const struct refd_txid none = { { 0 } };
	uint64_t nr;
	unsigned i;

	for (i = 0; !is_over(); i++) {
		memcpy(repo.uuid, &i, sizeof(i));
		if (journal_register_repo(j, &repo) == 0)
			journal_flush_repos(j, repo.epoch);
		journal_drop_deferred(j, i, &nr);
		journal_trim(j, &(struct journal_chain){ 0 }, NULL, 0, &none);
		journal_find_repo(j, repo.uuid, pass_repo, NULL);
	}
	return arg;
}

static void *copy_wal(void *arg)
{
	struct journal *j = commit_log_journal(the_log);
	struct journal_stats stats;

	while (!is_over()) {
		if (journal_checkpoint(j, 100 * 1000) == JOURNAL_UNKNOWN)
			commit_log_mend(the_log);
		commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE);
		journal_stats(j, &stats);
		commit_log_stuck_ns(the_log);
	}
	return arg;
}

/* ---- rows after a power loss ---- */

struct found_rows {
	uint64_t lsn[ALL];
};

static int find_row(void *arg, const struct journal_row *row)
{
	struct found_rows *found = arg;

	ck_assert_int_lt(row->pid, ALL);
	ck_assert_uint_eq(found->lsn[row->pid], 0);
	found->lsn[row->pid] = row->lsn;
	return 0;
}

static void check_rows(void)
{
	struct found_rows found = { { 0 } };
	const struct written *done;
	unsigned i;

	ck_assert_int_eq(commit_log_read(the_log, 0, find_row, &found), 0);
	for (i = 0; i < ALL; i++) {
		done = &written[i];
		if (done->r < 0)
			ck_assert_msg(found.lsn[i] == 0, "row %u", i);
		if (done->r == 0 && done->is_durable)
			ck_assert_msg(found.lsn[i] == done->lsn, "row %u", i);
	}
}

TEST(threads_go_on_while_syncs_fail, .times = 3)
{
	void *(*const beside[])(void *) = { look_up, register_repos, copy_wal };
	pthread_t threads[WRITERS + 3];
	unsigned long n = (unsigned long)_i;
	uintptr_t i;

	for (i = 0; i < WRITERS; i++)
		pthread_create(&threads[i], NULL, write_rows, (void *)i);
	for (i = 0; i < 3; i++)
		pthread_create(&threads[WRITERS + i], NULL, beside[i], NULL);
	while (!is_over()) {
		world_arm(w, SYNC_FAILS, n++ % 31, -EIO);
		while (!memfs_was_hit(w->fs) && !is_over())
			SYS(&sys_kernel, sleep_ns, 100000);
	}
	for (i = 0; i < WRITERS + 3; i++)
		pthread_join(threads[i], NULL);
	world_disarm(w);
	ck_assert_int_eq(commit_log_mend(the_log), 0);
	check_rows();
	cut();
	check_rows();
}

/* ---- deferred rows ---- */

static int count_deferred(void *arg, const struct journal_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return 0;
}

static unsigned nr_deferred(void)
{
	unsigned nr = 0;

	ck_assert_int_eq(journal_each_deferred(commit_log_journal(the_log), 0,
			     count_deferred, &nr),
	    0);
	return nr;
}

/* A deferred row is removed, which adds no row to the log, or is replaced by a
 * copy. In some cases a sync fails. */
TEST(an_unpark_is_found_out, .times = 6)
{
	struct journal_row rows[2] = { help_row(1, BYTES), help_row(1, BYTES) };
	bool has_copy = (_i & 1) != 0, fails = (_i & 2) != 0;
	struct commit_log_mark mark;
	int r;

	rows[0].kind = rows[1].kind = JOURNAL_DEFERRED;
	ck_assert_int_eq(commit_log_append(the_log, rows, 1, &mark), 0);
	ck_assert_int_eq(commit_log_wait(the_log, &mark, COMMIT_LOG_DURABLE),
	    0);
	rows[0].kind = JOURNAL_DEFERRED_END;
	rows[0].refers_to = rows[0].lsn;
	rows[1].mount = 0;
	ck_assert_int_eq(
	    commit_log_append(the_log, rows, has_copy ? 2 : 1, &mark), 0);
	/* The rows are durable before a later sync fails. */
	if ((_i & 4) != 0) {
		ck_assert_int_eq(
		    commit_log_wait(the_log, NULL, COMMIT_LOG_DURABLE), 0);
		break_log();
		ck_assert_int_eq(commit_log_mend(the_log), 0);
	} else if (fails) {
		world_arm(w, SYNC_FAILS, 0, -EIO);
	}
	r = commit_log_wait(the_log, &mark, COMMIT_LOG_DURABLE);
	ck_assert(!fails || world_disarm(w));
	ck_assert_int_eq(r, fails ? -EIO : 0);
	ck_assert_uint_eq(nr_deferred(), fails || has_copy);
	cut();
	ck_assert_uint_eq(nr_deferred(), fails || has_copy);
	help_row_done(&rows[0]);
	help_row_done(&rows[1]);
}
