/*
 * Proves the line of refd log --head. refd verify --head accepts the journal
 * from which the line was made, also later, trimmed, and with a new index. The
 * command finds a changed, a damaged and a missing record, a shorter journal
 * and a different journal. The command says when the line proves nothing any
 * more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify.h"
#include "daemon/store/journal/journal_internal.h"
#include "proto/hex.h"
#include "tests/lib/history_fixture.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define DAY_MS (24 * 3600 * 1000LL)

static uint64_t repo;
static char line[JOURNAL_CHAIN_TEXT];

static void add_rows(unsigned nr)
{
	fixture_updates(repo, nr, "refs/heads/x", "refs/heads/y");
}

/* As the daemon makes it. Returns its LSN. */
static uint64_t make_line(void)
{
	const struct journal_chain *chain;

	if (fixture.h == NULL)
		fixture_history();
	fixture_index();
	chain = history_chain(fixture.h);
	journal_chain_text(journal_uuid(fixture.j), chain, line);
	return chain->lsn;
}

static void reopen(void)
{
	fixture_close();
	fixture_open_journal();
}

/* Twelve rows, a line, and three more rows. */
static void setup(void)
{
	fixture_setup();
	fixture.retention_ms = 7 * DAY_MS;
	repo = fixture_repo("a.git", 0755);
	add_rows(12);
	ck_assert_uint_eq(make_line(), 12);
	add_rows(3);
}

/* What refd verify --head says, of the present files. */
static void says(int status, const char *words)
{
	const struct verify_options opt = { .sys = &sys_kernel,
		.state = tmp_root };
	char *said;

	ck_assert_int_eq(verify_head(&opt, line, &said), status);
	ck_assert_ptr_nonnull(said);
	ck_assert_msg(strstr(said, words) != NULL, "%s", said);
	free(said);
}

/* Somebody edits the database while no daemon runs. */
static void edit(const char *sql)
{
	fixture_close();
	fixture_sql("journal.db", sql);
	fixture_open_journal();
}

static void trim_all_to(uint64_t lsn)
{
	int r;

	if (fixture.h == NULL)
		fixture_history();
	fixture.wall_ms += 8 * DAY_MS;
	fixture.mono_ns += 8 * DAY_MS * 1000000;
	ck_assert_int_eq(journal_forget(fixture.j, lsn, true), 0);
	do {
		r = history_trim(fixture.h);
		/* The first look believes the last row. */
		fixture.mono_ns += DAY_MS * 1000000;
	} while (r == HISTORY_MORE || journal_trimmed(fixture.j) < lsn);
	ck_assert_uint_eq(journal_trimmed(fixture.j), lsn);
}

/* ---- as it was ---- */

CASE(.name = "as it was", .setup = setup, .teardown = fixture_teardown);

TEST(nothing_was_changed)
{
	says(0, "records 1 to 12 ");
	reopen();
	add_rows(600);
	says(0, "records 1 to 12 ");
	ck_assert_uint_eq(make_line(), 615);
	says(0, "records 1 to 615 ");
}

static unsigned nr_locks;

static int count_locks(const struct sys *sys, int fd)
{
	nr_locks++;
	return sys_kernel.flock_try(sys, fd);
}

static unsigned locks_to_verify(void)
{
	struct sys sys = sys_kernel;
	const struct verify_options opt = { .sys = &sys, .state = tmp_root };
	char *said;

	sys.flock_try = count_locks;
	nr_locks = 0;
	ck_assert_int_eq(verify_head(&opt, line, &said), 0);
	free(said);
	return nr_locks;
}

/* The daemon makes no checkpoint while verify has the lock of the WAL. */
TEST(many_records_are_read_in_slices)
{
	unsigned few = locks_to_verify();

	add_rows(5000);
	ck_assert_uint_eq(make_line(), 5015);
	ck_assert_uint_gt(locks_to_verify(), few);
}

TEST(a_new_index_has_the_same_line)
{
	char before[sizeof(line)];

	add_rows(1500);
	make_line();
	memcpy(before, line, sizeof(line));
	fixture_close();
	tmp_run("rm history.db*");
	fixture_open_journal();
	make_line();
	ck_assert_str_eq(line, before);
	trim_all_to(700);
	fixture_close();
	tmp_run("rm history.db*");
	fixture_open_journal();
	make_line();
	ck_assert_str_eq(line, before);
}

/* An index that is behind does not see the trimmed rows. */
TEST(rows_are_trimmed_before_they_are_indexed)
{
	char before[sizeof(line)];

	add_rows(100);
	make_line();
	memcpy(before, line, sizeof(line));
	fixture_close();
	tmp_run("rm history.db*");
	fixture_open_journal();
	trim_all_to(90);
	ck_assert_uint_eq(history_indexed(fixture.h), 90);
	make_line();
	ck_assert_str_eq(line, before);
}

TEST(trimmed)
{
	struct fixture_record deferred;

	fixture_begin(&deferred, repo, "refs/heads/deferred");
	deferred.row.kind = JOURNAL_DEFERRED;
	ck_assert_uint_eq(fixture_commit(&deferred), 16);
	add_rows(4);
	trim_all_to(11);
	says(0, "records 12 to 12 ");
	says(0, "the first is of 2026-08-01T00:00:00.000Z");
	ck_assert_uint_eq(make_line(), 20);
	/* The deferred row stays, and is in the chain only once. */
	trim_all_to(17);
	says(0, "records 18 to 20 ");
	reopen();
	says(0, "records 18 to 20 ");
	trim_all_to(20);
	says(128, "removed the records up to 20");
}

/* A refd that trims without a digest: its line begins anew. */
TEST(trimmed_without_a_digest)
{
	trim_all_to(5);
	edit("DROP TABLE " JOURNAL_CHAIN);
	says(1, "one from 6 on");
	tmp_run("rm -f history.db*");
	fixture_close();
	fixture_open_journal();
	make_line();
	says(0, "records 6 to 15 ");
	trim_all_to(9);
	says(0, "records 10 to 15 ");
}

/* ---- not as it was ---- */

static int copy_row(void *arg, const struct journal_row *row)
{
	struct journal_row *copy = arg;

	*copy = *row;
	copy->body = malloc(row->len);
	memcpy((void *)(uintptr_t)copy->body, row->body, row->len);
	return 0;
}

CASE(.name = "not as it was", .setup = setup, .teardown = fixture_teardown);

/* With the right checksum, as an attacker would: the uid, or a letter of the
 * message. */
TEST(a_changed_record, .times = 2)
{
	struct journal_reader *reader;
	struct journal_row row;
	char sql[2000], hex[1800], *message;

	ck_assert_int_eq(journal_reader_open(fixture.j, &reader), 0);
	ck_assert_int_eq(journal_read(reader, 6, 8, false, 1, copy_row, &row),
	    0);
	journal_reader_close(reader);
	message = memmem(row.body, row.len, "push", 4);
	ck_assert_ptr_nonnull(message);
	ck_assert_uint_lt(2 * row.len, sizeof(hex));
	if (_i == 0)
		row.uid = 0;
	else
		message[0] = 'P';
	snprintf(sql, sizeof(sql),
	    "UPDATE record SET uid = %u, body = x'%s', checksum = %u"
	    " WHERE lsn = 7",
	    row.uid, refd_hex_put(row.body, row.len, hex),
	    journal_checksum(&row));
	free((void *)(uintptr_t)row.body);
	edit(sql);
	says(1, "up to 12 are not as they were: one from 1 on was changed");
	/* Trimming does not hide it. */
	trim_all_to(8);
	says(1, "up to 12 are not as they were: one from 9 on was changed");
	/* Nor does a line that is made later. */
	make_line();
	says(1, "up to 15 are not as they were");
}

TEST(a_damaged_record)
{
	edit("UPDATE record SET uid = 0 WHERE lsn = 7");
	says(1, "record 7 ");
	/* No line passes a damaged record. */
	fixture_close();
	tmp_run("rm history.db*");
	fixture_open_journal();
	ck_assert_uint_eq(make_line(), 6);
	says(0, "records 1 to 6 ");
}

TEST(removed_in_the_middle)
{
	edit("DELETE FROM record WHERE lsn IN (5, 9)");
	says(1, "up to 12 are not as they were: there is no record 5");
}

TEST(the_record_of_the_line_is_removed)
{
	edit("DELETE FROM record WHERE lsn = 12");
	says(1, "there is no record 12");
}

TEST(removed_at_the_end)
{
	edit("DELETE FROM record WHERE lsn > 10");
	says(1, "ends at record 10, before that of the line");
	/* The journal goes on, with the same numbers. */
	add_rows(10);
	says(1, "one from 1 on was changed");
}

/* Somebody removes the beginning, as if by the retention. */
TEST(removed_at_the_beginning)
{
	trim_all_to(4);
	edit("DELETE FROM record WHERE lsn = 5");
	says(1, "there is no record 5");
	edit("UPDATE " JOURNAL_CHAIN " SET digest = zeroblob(32)");
	says(1, "there is no record 5");
}

TEST(another_journal)
{
	fixture_close();
	tmp_run("rm journal.db* history.db*");
	says(128, "can't read the journal");
	fixture_open_journal();
	add_rows(15);
	says(1, "another journal");
}

/* ---- the line ---- */

CASE(.name = "the line", .setup = setup, .teardown = fixture_teardown);

TEST(only_a_line)
{
	static const char *const wrong[] = { "", "refd-head", "refd-head 1 2 3",
		"refd-head 00000000000000000000000000000000 1 "
		"000000000000000000000000000000000000000000000000000000000000"
		"000g" };
	const char *right = line;
	char *at;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(line, sizeof(line), "%s", wrong[i]);
		says(129, "no line of");
	}
	make_line();
	says(0, "");
	at = strrchr(right, ' ');
	memmove(at + 1, at + 2, strlen(at + 1));
	says(129, "no line of");
	make_line();
	strcat(line, " ");
	says(129, "no line of");
	/* A wrong digit. */
	make_line();
	at = line + strlen(line) - 1;
	*at = *at == '0' ? '1' : '0';
	says(1, "was changed");
	/* A longer past than there is. */
	make_line();
	at = strrchr(line, ' ');
	memmove(at + 1, at, strlen(at) + 1);
	*at = '0';
	says(1, "ends at record 15");
}
