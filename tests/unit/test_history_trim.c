/*
 * Proves that history is trimmed. Rows go by age and by size, in slices, but
 * not before they are forgotten, nor while they are deferred, and not because
 * a clock is wrong for a moment. The data for look-ups by id stays until the id
 * expires, and the space is used again.
 */
#include <string.h>

#include "tests/lib/history_fixture.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static uint64_t repo;

static void setup(void)
{
	fixture_setup();
	repo = fixture_repo("a.git", 0755);
}

static void add_rows(unsigned nr)
{
	fixture_updates(repo, nr, "refs/heads/x", "refs/heads/y");
}

static void forget(uint64_t lsn)
{
	ck_assert_int_eq(journal_forget(fixture.j, lsn, true), 0);
}

static void trim_all(void)
{
	int r;

	do {
		r = history_trim(fixture.h);
		ck_assert(r == 0 || r == HISTORY_MORE);
	} while (r == HISTORY_MORE);
}

/* Time passes, and the clock shows it. The trimming of this daemon knows when
 * the time began. */
static void pass(int64_t ms)
{
	if (fixture.h == NULL)
		fixture_history();
	trim_all();
	fixture.wall_ms += ms;
	fixture.mono_ns += ms * 1000000;
}

static int count_row(void *arg, const struct journal_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return 0;
}

static unsigned rows_left(void)
{
	unsigned nr = 0;

	ck_assert_int_eq(journal_scan(fixture.j, 0, count_row, &nr), 0);
	return nr;
}

/* Result of a look-up by id: the number of members, or -1. */
struct remembered {
	int members;
	enum refd_status status;
	uint64_t digest;
};

static int remember(void *arg, const struct journal_row *row)
{
	struct remembered *found = arg;
	struct record rec;

	ck_assert_int_eq(record_decode(row->body, row->len, &rec), 0);
	found->members = (int)rec.nr_members;
	found->digest = rec.digest;
	if (rec.nr_members > 0)
		found->status = rec.members[rec.nr_members - 1].status;
	record_done(&rec);
	return 0;
}

static struct remembered look_up(const struct refd_txid *txid)
{
	struct remembered found = { .members = -1 };
	struct journal_reader *reader;

	ck_assert_int_eq(journal_reader_open(fixture.j, &reader), 0);
	ck_assert_int_eq(journal_lookup(reader, 1000, txid, remember, &found),
	    0);
	journal_reader_close(reader);
	return found;
}

#define DAY_MS (24 * 3600 * 1000LL)

static size_t nr_of_x(void)
{
	const char *told = fixture_log(NULL, "refs/heads/x", false, 0, NULL);
	size_t nr = 0;

	while ((told = strchr(told, '@')) != NULL) {
		told++;
		nr++;
	}
	return nr;
}

CASE(.setup = setup, .teardown = fixture_teardown, .seconds = 120);

TEST(what_is_old_goes)
{
	struct store_question *ask;

	fixture.retention_ms = 7 * DAY_MS;
	add_rows(300);
	pass(6 * DAY_MS);
	add_rows(300);
	fixture_index();
	forget(600);
	trim_all();
	ck_assert_uint_eq(rows_left(), 600);
	pass(2 * DAY_MS);
	trim_all();
	ck_assert_uint_eq(rows_left(), 300);
	ck_assert_uint_eq(journal_trimmed(fixture.j), 300);
	ck_assert_uint_eq(nr_of_x(), 100);
	/* A client with an earlier position learns of the gap. */
	ask = fixture_ask(REFD_VERB_WATCH);
	ask->req.select.has_after = true;
	ask->req.select.after.lsn = 200;
	ask->req.select.limit = 1;
	ck_assert(fixture_answer(ask));
	ck_assert(ask->answer.has_gap);
	ck_assert_uint_eq(ask->answer.gap, 300);
	ck_assert_uint_eq(ask->answer.changes[0].record->lsn, 301);
	fixture_free(ask);
	/* Also after a restart. */
	fixture_close();
	fixture_open_journal();
	ck_assert_uint_eq(journal_trimmed(fixture.j), 300);
	fixture_history();
	fixture_index();
	ck_assert_uint_eq(nr_of_x(), 100);
}

/* The clock is a month ahead for three seconds, before or after a restart. */
TEST(a_wrong_clock_costs_little, .times = 2)
{
	fixture.retention_ms = 7 * DAY_MS;
	add_rows(300);
	fixture_history();
	forget(300);
	if (_i == 0)
		trim_all();
	fixture.wall_ms += 30 * DAY_MS;
	trim_all();
	fixture.mono_ns += 3000000000;
	trim_all();
	ck_assert_uint_eq(rows_left(), 300);
	ck_assert_int_eq(history_clock_ahead_ms(fixture.h) / DAY_MS, 29);
	fixture.wall_ms -= 30 * DAY_MS;
	trim_all();
	ck_assert_int_eq(history_clock_ahead_ms(fixture.h), 0);
	ck_assert_uint_eq(rows_left(), 300);
	/* A daemon that really rested so long soon has the retention again. */
	fixture.wall_ms += 30 * DAY_MS;
	trim_all();
	fixture.mono_ns += 2 * DAY_MS * 1000000;
	trim_all();
	ck_assert_uint_eq(rows_left(), 0);
}

/* A new journal has no row to compare the clock with. */
TEST(a_new_journal_believes_the_clock)
{
	fixture.retention_ms = DAY_MS;
	fixture_history();
	trim_all();
	ck_assert_int_eq(history_clock_ahead_ms(fixture.h), 0);
	add_rows(10);
	forget(10);
	pass(2 * DAY_MS);
	trim_all();
	ck_assert_uint_eq(rows_left(), 0);
}

TEST(what_recovery_may_want_stays)
{
	struct fixture_record deferred;
	struct journal_row end;

	fixture.retention_ms = DAY_MS;
	add_rows(10);
	fixture_begin(&deferred, repo, "refs/heads/deferred");
	deferred.row.kind = JOURNAL_DEFERRED;
	ck_assert_uint_eq(fixture_commit(&deferred), 11);
	add_rows(10);
	pass(10 * DAY_MS);
	trim_all();
	ck_assert_uint_eq(rows_left(), 21);
	forget(5);
	trim_all();
	ck_assert_uint_eq(journal_trimmed(fixture.j), 5);
	ck_assert_uint_eq(rows_left(), 16);
	ck_assert_int_eq(journal_trim(fixture.j,
			     &(struct journal_chain){ .lsn = 6 }, NULL, 0,
			     &(struct refd_txid){ 0 }),
	    -16);
	forget(21);
	trim_all();
	/* Only the deferred row stays, until it is removed from the list. */
	ck_assert_uint_eq(rows_left(), 1);
	end = deferred.row;
	end.kind = JOURNAL_DEFERRED_END;
	end.refers_to = 11;
	end.len = 0;
	ck_assert_int_eq(journal_commit(fixture.j, &end, 1, true), 0);
	ck_assert_uint_eq(rows_left(), 0);
}

/* As many rows go as the size requires. The ids stay for their time. */
TEST(what_is_too_much_goes_and_its_ids_stay)
{
	struct fixture_record first, again;
	struct remembered found;
	uint64_t before;
	unsigned i;

	fixture.retention_ms = 7 * DAY_MS;
	fixture.retention_bytes = 300 * 1024;
	fixture_begin(&first, repo, "refs/heads/first");
	first.rec.digest = 77;
	fixture_add(&first, "refs/heads/no")->status = REFD_STALE;
	fixture_commit(&first);
	add_rows(3000);
	before = fixture_used_bytes();
	ck_assert_uint_gt(before, 2 * fixture.retention_bytes);
	fixture_history();
	fixture_index();
	forget(3001);
	trim_all();
	ck_assert_uint_lt(fixture_used_bytes(), before);
	ck_assert_uint_gt(journal_trimmed(fixture.j), 1000);
	/* Any number of ids leaves room for history. */
	for (i = 0; i < 5; i++) {
		add_rows(3000);
		fixture_index();
		forget(journal_last_lsn(fixture.j));
		trim_all();
	}
	ck_assert_uint_gt(fixture_used_bytes(), 4 * fixture.retention_bytes);
	ck_assert_uint_gt(rows_left(), 300);
	ck_assert_uint_lt(rows_left(), 2000);
	found = look_up(&first.row.txid);
	ck_assert_int_eq(found.members, 2);
	ck_assert_int_eq(found.status, REFD_STALE);
	ck_assert_uint_eq(found.digest, 77);
	/* The ids stay until they expire, although no row is left. */
	pass(8 * DAY_MS);
	for (i = 0; i < 10; i++) {
		fixture_begin(&again, repo, "refs/heads/again");
		forget(fixture_commit(&again) - 1);
		trim_all();
	}
	ck_assert_int_eq(look_up(&first.row.txid).members, -1);
	ck_assert_int_eq(look_up(&again.row.txid).members, 1);
}

/* The file also has the ids of trimmed rows: its size is no reason to trim. */
TEST(without_an_index_no_row_goes_by_size)
{
	fixture.retention_bytes = 300 * 1024;
	add_rows(3000);
	ck_assert_uint_gt(fixture_used_bytes(), 2 * fixture.retention_bytes);
	tmp_run("mkdir history.db");
	fixture_history();
	forget(3000);
	trim_all();
	ck_assert_uint_eq(rows_left(), 3000);
}

/* For an id born AHEAD_MS after now: the number of members that a look-up finds
 * LATER_MS from now, behind NR_OTHERS trimmed rows. */
static int look_up_late(int64_t ahead_ms, int64_t later_ms, unsigned nr_others)
{
	uint64_t birth_ms = (uint64_t)(fixture.wall_ms + ahead_ms);
	struct fixture_record r;
	unsigned i;

	fixture.retention_ms = 7 * DAY_MS;
	fixture_begin(&r, repo, "refs/heads/first");
	for (i = 0; i < 6; i++)
		r.row.txid.bytes[i] = (uint8_t)(birth_ms >> (8 * (5 - i)));
	fixture_commit(&r);
	pass(later_ms);
	add_rows(nr_others);
	fixture_index();
	forget(1 + nr_others);
	trim_all();
	ck_assert_uint_gt(journal_trimmed(fixture.j), nr_others / 3);
	return look_up(&r.row.txid).members;
}

/* Retention, plus an hour for different clocks, whatever the size. */
TEST(an_id_near_the_horizon_is_kept)
{
	fixture.retention_bytes = 300 * 1024;
	ck_assert_int_eq(look_up_late(0, 7 * DAY_MS + 55 * 60 * 1000, 3000), 1);
}

/* An id that is later than its row: a client's clock is ahead. */
TEST(an_id_from_the_future_is_kept)
{
	ck_assert_int_eq(look_up_late(5 * DAY_MS, 9 * DAY_MS, 0), 1);
	ck_assert_uint_eq(rows_left(), 0);
}

/* Free space is used again: the file stops growing. */
TEST(the_file_is_bounded)
{
	struct sys_stat first, last;
	unsigned i;

	fixture.retention_ms = DAY_MS;
	fixture_history();
	memset(&first, 0, sizeof(first));
	for (i = 0; i < 12; i++) {
		add_rows(1000);
		forget(journal_last_lsn(fixture.j));
		pass(2 * DAY_MS);
		fixture_index();
		trim_all();
		ck_assert_int_eq(journal_checkpoint(fixture.j, 0), 0);
		ck_assert_int_eq(
		    SYS(&fixture.sys, lstatat, tmp_fd, "journal.db", &last), 0);
		if (i == 3)
			first = last;
	}
	ck_assert_uint_le(last.size, first.size);
}

/* A slice of trimming needs no sync. */
TEST(trimming_costs_no_flush)
{
	struct journal_stats before, after;

	fixture.retention_ms = DAY_MS;
	add_rows(500);
	forget(500);
	pass(2 * DAY_MS);
	journal_stats(fixture.j, &before);
	trim_all();
	journal_stats(fixture.j, &after);
	ck_assert_uint_eq(rows_left(), 0);
	ck_assert_uint_eq(after.flushes, before.flushes);
	/* Commits are synced as before. */
	add_rows(1);
	journal_stats(fixture.j, &after);
	ck_assert_uint_eq(after.flushes, before.flushes + 1);
}
