/*
 * Proves the work of the journal on a real file system, with SQLite's own VFS.
 * Committed rows are found by scan and look-up, also after a kill -9. LSNs are
 * never used twice. Starts, repositories and the forgotten LSN last. The WAL is
 * gone after a clean end. A journal that can't be opened again refuses all
 * work.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct journal *j;

static void setup(void)
{
	tmp_setup();
	j = help_open_here();
}

static void teardown(void)
{
	help_close(j);
	tmp_teardown();
}

static void restart(void)
{
	help_close(j);
	j = help_open_here();
}

/* ---- rows ---- */

CASE(.setup = setup, .teardown = teardown);

TEST(what_is_committed_is_scanned)
{
	bool seen[12];

	ck_assert_uint_eq(journal_last_lsn(j), 0);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 0);
	ck_assert_int_eq(help_commit(j, 1, 1, 16), 0);
	ck_assert_int_eq(help_commit(j, 2, 9, 5000), 0);
	ck_assert_uint_eq(journal_last_lsn(j), 10);
	ck_assert_uint_eq(help_scan(j, seen, 12), 10);
	ck_assert(seen[1] && seen[10] && !seen[0] && !seen[11]);
	restart();
	ck_assert_uint_eq(help_scan(j, seen, 12), 10);
	ck_assert_uint_eq(journal_last_lsn(j), 10);
}

/* More rows than a slice of the scan. */
static int count_after(void *arg, const struct journal_row *row)
{
	uint64_t *last = arg;

	ck_assert_uint_eq(row->lsn, *last + 1);
	*last = row->lsn;
	return row->lsn == 777 ? 42 : 0;
}

TEST(a_scan_starts_and_stops_where_it_is_told)
{
	uint64_t last = 0;

	ck_assert_int_eq(help_commit(j, 1, 1000, 16), 0);
	ck_assert_int_eq(journal_scan(j, 0, count_after, &last), 42);
	ck_assert_uint_eq(last, 777);
	ck_assert_int_eq(journal_scan(j, 777, count_after, &last), 0);
	ck_assert_uint_eq(last, 1000);
	ck_assert_int_eq(journal_scan(j, 1000, count_after, &last), 0);
	ck_assert_int_eq(journal_scan(j, UINT64_MAX, count_after, &last), 0);
	ck_assert_uint_eq(last, 1000);
}

struct found {
	unsigned nr;
	struct journal_row rows[4];
};

static int collect(void *arg, const struct journal_row *row)
{
	struct found *found = arg;

	ck_assert_uint_lt(found->nr, 4);
	found->rows[found->nr++] = *row;
	return 0;
}

static unsigned look_up(struct journal_reader *reader, int64_t uid,
    const struct refd_txid *txid, struct found *found)
{
	found->nr = 0;
	ck_assert_int_eq(journal_lookup(reader, uid, txid, collect, found), 0);
	return found->nr;
}

TEST(a_transaction_is_looked_up_with_its_aborts)
{
	struct journal_row row = help_row(5, 100), stranger = help_row(5, 50),
			   taken_back = help_row(5, 20);
	struct journal_reader *reader;
	struct found found;

	ck_assert_int_eq(help_commit(j, 1, 4, 16), 0);
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	ck_assert_uint_eq(look_up(reader, HELP_UID, &row.txid, &found), 0);

	stranger.uid = UINT32_MAX;
	row.final = false;
	ck_assert_int_eq(journal_commit(j, &stranger, 1, true), 0);
	ck_assert_int_eq(journal_commit(j, &row, 1, true), 0);
	taken_back.kind = JOURNAL_ABORT;
	taken_back.refers_to = row.lsn;
	ck_assert_int_eq(journal_commit(j, &taken_back, 1, true), 0);

	ck_assert_uint_eq(look_up(reader, HELP_UID, &row.txid, &found), 2);
	ck_assert_uint_eq(found.rows[0].lsn, row.lsn);
	ck_assert_int_eq(found.rows[0].kind, JOURNAL_SLICE);
	ck_assert(!found.rows[0].final);
	ck_assert_uint_eq(found.rows[1].kind, JOURNAL_ABORT);
	ck_assert_uint_eq(found.rows[1].refers_to, row.lsn);
	ck_assert_uint_eq(look_up(reader, UINT32_MAX, &row.txid, &found), 1);
	ck_assert_uint_eq(found.rows[0].lsn, stranger.lsn);
	ck_assert_uint_eq(found.rows[0].start, journal_this_start(j));
	ck_assert_uint_eq(look_up(reader, 0, &row.txid, &found), 0);
	ck_assert_uint_eq(look_up(reader, JOURNAL_ANY_UID, &row.txid, &found),
	    3);
	journal_reader_close(reader);
	help_row_done(&row);
	help_row_done(&stranger);
	help_row_done(&taken_back);
}

TEST(a_body_may_be_empty_or_large)
{
	struct journal_row empty = { .kind = JOURNAL_DEFERRED };
	struct journal_row large = help_row(2, 20 * 1000 * 1000);
	struct journal_reader *reader;
	struct found found;

	ck_assert_int_eq(journal_commit(j, &empty, 1, true), 0);
	ck_assert_int_eq(journal_commit(j, &large, 1, true), 0);
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	ck_assert_uint_eq(look_up(reader, 0, &empty.txid, &found), 1);
	ck_assert_uint_eq(found.rows[0].len, 0);
	ck_assert_uint_eq(look_up(reader, HELP_UID, &large.txid, &found), 1);
	ck_assert_uint_eq(found.rows[0].len, large.len);
	journal_reader_close(reader);
	help_row_done(&large);
}

/* Recovery commits abort records from within its scan. */
static int commit_within(void *arg, const struct journal_row *row)
{
	(void)arg;
	if (row->lsn <= 3)
		ck_assert_int_eq(help_commit(j, 10 + (unsigned)row->lsn, 1, 16),
		    0);
	ck_assert_int_eq(journal_forget(j, row->lsn, true), 0);
	return journal_checkpoint(j, 0);
}

TEST(a_callback_may_use_the_journal)
{
	struct journal_row row = help_row(3, 16);
	struct journal_reader *reader;

	ck_assert_int_eq(help_commit(j, 1, 3, 16), 0);
	ck_assert_int_eq(journal_scan(j, 0, commit_within, NULL), 0);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 6);
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	ck_assert_int_eq(journal_lookup(reader, HELP_UID, &row.txid,
			     commit_within, NULL),
	    0);
	journal_reader_close(reader);
	help_row_done(&row);
}

/* ---- LSNs, forgetting ---- */

TEST(what_is_forgotten_rides_along_or_goes_at_once)
{
	struct journal_stats before, after;

	ck_assert_int_eq(help_commit(j, 1, 5, 16), 0);
	journal_stats(j, &before);
	ck_assert_int_eq(journal_forget(j, 2, false), 0);
	ck_assert_int_eq(journal_forget(j, 1, false), 0);
	ck_assert_uint_eq(journal_forgotten(j), 2);
	journal_stats(j, &after);
	ck_assert_uint_eq(after.commits, before.commits);
	ck_assert_int_eq(help_commit(j, 6, 1, 16), 0);
	journal_stats(j, &after);
	ck_assert_uint_eq(after.commits, before.commits + 1);
	ck_assert_int_eq(help_ask("SELECT forgotten FROM meta"), 2);

	ck_assert_int_eq(journal_forget(j, 4, true), 0);
	ck_assert_int_eq(help_ask("SELECT forgotten FROM meta"), 4);
	journal_stats(j, &before);
	ck_assert_int_eq(journal_forget(j, 3, true), 0);
	journal_stats(j, &after);
	ck_assert_uint_eq(after.commits, before.commits);
	/* Future rows are not forgotten before they are written. */
	ck_assert_int_eq(journal_forget(j, 1000, false), 0);
	ck_assert_uint_eq(journal_forgotten(j), 6);
	restart();
	ck_assert_uint_eq(journal_forgotten(j), 6);
}

TEST(an_lsn_is_never_used_twice)
{
	ck_assert_int_eq(help_commit(j, 1, 50, 16), 0);
	ck_assert_int_eq(journal_forget(j, 50, true), 0);
	help_close(j);
	help_ask("DELETE FROM record");
	j = help_open_here();
	ck_assert_uint_eq(journal_last_lsn(j), 50);
	ck_assert_int_eq(help_commit(j, 51, 1, 16), 0);
	ck_assert_uint_eq(journal_last_lsn(j), 51);
}

/* ---- repositories ---- */

static int see_repo(void *arg, const struct journal_repo *repo)
{
	struct journal_repo *seen = arg;

	if (repo->id != seen->id)
		return 0;
	ck_assert_str_eq(repo->path, seen->path);
	ck_assert_mem_eq(repo->uuid, seen->uuid, sizeof(repo->uuid));
	ck_assert_uint_eq(repo->dev, seen->dev);
	ck_assert_uint_eq(repo->ino, seen->ino);
	return 99;
}

TEST(a_repository_keeps_its_id_when_it_moves)
{
	struct journal_repo a = { .uuid = { 1 },
		.path = "/srv/a.git",
		.dev = UINT64_MAX,
		.ino = 5 };
	struct journal_repo b = { .uuid = { 2 }, .path = "/srv/b.git" };
	struct journal_stats before, after;
	uint64_t id;

	ck_assert_int_eq(journal_register_repo(j, &a), 0);
	ck_assert_int_eq(journal_register_repo(j, &b), 0);
	id = a.id;
	ck_assert_uint_ge(id, 1);
	ck_assert_uint_ne(id, b.id);
	ck_assert_int_eq(journal_each_repo(j, see_repo, &a), 99);
	restart();
	journal_stats(j, &before);
	a.id = 0;
	ck_assert_int_eq(journal_register_repo(j, &a), 0);
	ck_assert_uint_eq(a.id, id);
	journal_stats(j, &after);
	ck_assert_uint_eq(after.commits, before.commits);
	a.path = "/srv/new.git";
	ck_assert_int_eq(journal_register_repo(j, &a), 0);
	ck_assert_uint_eq(a.id, id);
	journal_stats(j, &after);
	ck_assert_uint_eq(after.commits, before.commits + 1);
	ck_assert_int_eq(journal_each_repo(j, see_repo, &a), 99);
	ck_assert_int_eq(journal_each_repo(j, see_repo, &b), 99);
}

/* One flush makes all earlier registrations durable. */
TEST(repositories_last_with_the_next_flush)
{
	struct journal_repo a = { .uuid = { 1 }, .path = "/srv/a.git" };
	struct journal_repo b = { .uuid = { 2 }, .path = "/srv/b.git" };
	struct journal_stats before, after;

	ck_assert_int_eq(journal_flush(j), 0);
	journal_stats(j, &before);
	ck_assert_int_eq(journal_register_repo(j, &a), 0);
	ck_assert_int_eq(journal_register_repo(j, &b), 0);
	ck_assert(!journal_repos_are_durable(j, a.epoch));
	ck_assert_int_eq(journal_flush_repos(j, a.epoch), 0);
	ck_assert(journal_repos_are_durable(j, b.epoch));
	ck_assert_int_eq(journal_flush_repos(j, b.epoch), 0);
	journal_stats(j, &after);
	ck_assert_uint_eq(after.flushes, before.flushes + 1);

	b.path = "/srv/new.git";
	ck_assert_int_eq(journal_register_repo(j, &b), 0);
	ck_assert(!journal_repos_are_durable(j, a.epoch));
	help_reopen(j);
	ck_assert(!journal_repos_are_durable(j, b.epoch));
	ck_assert_int_eq(journal_flush_repos(j, b.epoch), -ESTALE);
	ck_assert_int_eq(journal_register_repo(j, &b), 0);
	ck_assert(journal_repos_are_durable(j, b.epoch));
}

/* A failed reopening can be tried again, and a reader survives it. */
TEST(it_is_opened_again)
{
	struct journal_row row = help_row(1, 16);
	struct journal_reader *reader;
	struct found found;
	char *why = NULL;

	ck_assert_int_eq(help_commit(j, 1, 2, 16), 0);
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	help_reopen(j);
	ck_assert_uint_eq(look_up(reader, HELP_UID, &row.txid, &found), 1);
	ck_assert_uint_eq(journal_this_start(j), 1);
	ck_assert_int_eq(help_commit(j, 3, 1, 16), 0);

	tmp_run("mv journal.db away");
	ck_assert_int_lt(journal_reopen(j, &why), 0);
	ck_assert_ptr_nonnull(why);
	free(why);
	ck_assert_int_eq(help_commit(j, 4, 1, 16), JOURNAL_UNKNOWN);
	ck_assert_int_eq(journal_lookup(reader, HELP_UID, &row.txid, collect,
			     &found),
	    JOURNAL_UNKNOWN);
	ck_assert_int_eq(journal_forget(j, 1, true), JOURNAL_UNKNOWN);
	ck_assert_int_eq(journal_checkpoint(j, 0), JOURNAL_UNKNOWN);
	tmp_run("mv away journal.db");
	help_reopen(j);
	ck_assert_int_eq(help_commit(j, 4, 1, 16), 0);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 4);
	journal_reader_close(reader);
	help_row_done(&row);
}

/* ---- starts and ends ---- */

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

static int count_starts(void *arg, const struct journal_start *start)
{
	uint64_t *nr = arg;

	ck_assert_uint_eq(start->id, ++*nr);
	ck_assert(start->is_of_boot);
	ck_assert(start->is_of_memory);
	return 0;
}

TEST(every_start_is_registered)
{
	uint8_t uuid[16];
	uint64_t nr;
	unsigned i;

	for (i = 1; i <= 3; i++) {
		j = help_open_here();
		ck_assert_uint_eq(journal_this_start(j), i);
		if (i > 1)
			ck_assert_mem_eq(uuid, journal_uuid(j), sizeof(uuid));
		memcpy(uuid, journal_uuid(j), sizeof(uuid));
		nr = 0;
		ck_assert_int_eq(journal_each_start(j, count_starts, &nr), 0);
		ck_assert_uint_eq(nr, i);
		help_close(j);
	}
}

static int count_starts_of_a_copy(void *arg, const struct journal_start *start)
{
	uint64_t *nr = arg;

	++*nr;
	ck_assert(start->is_of_boot);
	ck_assert_int_eq(start->is_of_memory, *nr > 1);
	return 0;
}

TEST(a_copy_was_written_by_no_start)
{
	uint64_t nr = 0;

	help_close(help_open_here());
	tmp_run("cp journal.db copy && mv copy journal.db");
	j = help_open_here();
	ck_assert_int_eq(journal_each_start(j, count_starts_of_a_copy, &nr), 0);
	ck_assert_uint_eq(nr, 2);
	help_close(j);
}

TEST(after_a_clean_end_the_wal_is_empty)
{
	char *wal;

	j = help_open_here();
	ck_assert_int_eq(help_commit(j, 1, 10, 16), 0);
	ck_assert(tmp_exists("journal.db-wal"));
	help_close(j);
	wal = tmp_output("stat -c %%s journal.db-wal");
	ck_assert_str_eq(wal, "0\n");
	free(wal);
	ck_assert(!tmp_exists("journal.db-shm"));
	ck_assert(!tmp_exists("journal.db.new"));
	ck_assert_uint_eq(tmp_mode("journal.db"), 0600);
	ck_assert_int_eq(journal_close(NULL), 0);
}

static void commit_and_die(void)
{
	unsigned i;

	j = help_open_here();
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(help_commit(j, i, 1, 300), 0);
	raise(SIGKILL);
}

TEST(after_a_crash_everything_committed_is_there)
{
	struct journal_stats stats;
	char *wal;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		commit_and_die();
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert(tmp_exists("journal.db-wal"));
	j = help_open_here();
	/* All rows are in the synced database. The WAL holds this start and the
	 * free room. */
	journal_stats(j, &stats);
	ck_assert_uint_lt(stats.wal_bytes, 4 * 4200);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 20);
	ck_assert_uint_eq(journal_this_start(j), 2);
	wal = tmp_output("stat -c %%s journal.db-wal");
	ck_assert_int_eq(atoi(wal), HELP_WAL_ROOM);
	free(wal);
	help_close(j);
}
