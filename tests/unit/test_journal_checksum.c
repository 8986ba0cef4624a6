/*
 * Proves that a row with a changed column is not read, in the table of records
 * and in the table of trimmed rows. The sentence names the row. Other rows are
 * read, and new rows are written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define ROWS      10
#define ROW_BYTES 3000
#define BYTES_MAX (1 << 20)

static void setup(void)
{
	struct journal *j;

	tmp_setup();
	j = help_open_here();
	ck_assert_int_eq(help_commit(j, 0, ROWS, ROW_BYTES), 0);
	help_close(j);
}

static int count_row(void *arg, const struct journal_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return 0;
}

/* Row 4 has LSN 5. Earlier rows are read, and the sentence names row 4. */
static void assert_found(const char *when)
{
	struct journal_row good = help_row(2, 16), bad = help_row(4, 16);
	struct journal *j = help_open_here();
	struct journal_reader *reader;
	unsigned rows = 0;
	char *text;

	ck_assert_ptr_null(journal_damage(j));
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	ck_assert_int_eq(journal_lookup(reader, JOURNAL_ANY_UID, &good.txid,
			     count_row, &rows),
	    0);
	ck_assert_uint_eq(rows, 1);
	journal_lookup(reader, JOURNAL_ANY_UID, &bad.txid, count_row, &rows);
	ck_assert_uint_eq(rows, 1);
	ck_assert_int_eq(journal_read(reader, 0, 100, true, 100, count_row,
			     &rows),
	    -EUCLEAN);
	ck_assert_uint_eq(rows, 1 + ROWS - 5);
	rows = 0;
	ck_assert_msg(journal_scan(j, 0, count_row, &rows) == -EUCLEAN, "%s",
	    when);
	ck_assert_uint_eq(rows, 4);
	text = journal_damage(j);
	ck_assert_ptr_nonnull(strstr(text, "journal.db is damaged: record 5"));
	free(text);
	/* The journal goes on. */
	ck_assert_int_eq(help_commit(j, 100, 1, 16), 0);
	journal_reader_close(reader);
	help_close(j);
	help_row_done(&good);
	help_row_done(&bad);
	help_ask("DELETE FROM record WHERE lsn > 10");
}

CASE(.setup = setup, .teardown = tmp_teardown);

/* In the middle of the body, and at the end. */
TEST(a_byte_of_a_body, .times = 2)
{
	help_ask(_i == 0 ?
		"UPDATE record SET body = CAST(substr(body, 1, 9) ||"
		" x'00' || substr(body, 11) AS BLOB) WHERE lsn = 5" :
		"UPDATE record SET body = CAST(substr(body, 1,"
		" length(body) - 1) || x'00' AS BLOB) WHERE lsn = 5");
	assert_found("body");
}

TEST(a_bit_of_a_body)
{
	static uint8_t bytes[BYTES_MAX];
	char run[64];
	uint8_t *found;
	ssize_t len;
	int fd;

	memset(run, 'a' + 4, sizeof(run));
	fd = openat(tmp_fd, "journal.db", O_RDWR | O_CLOEXEC);
	len = pread(fd, bytes, sizeof(bytes), 0);
	ck_assert_int_gt(len, 0);
	found = memmem(bytes, (size_t)len, run, sizeof(run));
	ck_assert_ptr_nonnull(found);
	found[10] ^= 1;
	ck_assert_int_eq(pwrite(fd, found + 10, 1, found + 10 - bytes), 1);
	close(fd);
	assert_found("body");
}

TEST(any_column_of_a_row)
{
	static const char *const columns[] = { "kind", "uid", "pid", "repo",
		"start", "token", "mount", "locked_at_ns", "time_us", "voids",
		"group_lsn", "checksum" };
	char sql[128];
	size_t i;

	for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		snprintf(sql, sizeof(sql),
		    "UPDATE record SET %s = %s + 1 WHERE lsn = 5", columns[i],
		    columns[i]);
		help_ask(sql);
		assert_found(columns[i]);
		snprintf(sql, sizeof(sql),
		    "UPDATE record SET %s = %s - 1 WHERE lsn = 5", columns[i],
		    columns[i]);
		help_ask(sql);
	}
	help_ask("UPDATE record SET final = 0 WHERE lsn = 5");
	assert_found("final");
	help_ask("UPDATE record SET final = 1, checksum = 0 WHERE lsn = 5");
	assert_found("checksum of 0");
	help_ask("UPDATE record SET final = 1, txid = zeroblob(16)"
		 " WHERE lsn = 5");
	assert_found("txid");
}

TEST(what_is_kept_of_a_trimmed_row)
{
	struct journal_row row = help_row(4, ROW_BYTES);
	struct journal *j = help_open_here();
	const struct journal_chain upto = { .lsn = ROWS };
	struct refd_txid none = { .bytes = { 0 } };
	struct journal_reader *reader;
	unsigned rows = 0;

	row.lsn = 5;
	ck_assert_int_eq(journal_forget(j, ROWS, true), 0);
	ck_assert_int_eq(journal_trim(j, &upto, &row, 1, &none), 0);
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	ck_assert_int_eq(
	    journal_lookup(reader, HELP_UID, &row.txid, count_row, &rows), 0);
	ck_assert_uint_eq(rows, 1);
	journal_reader_close(reader);
	help_close(j);
	help_ask("UPDATE past SET final = 0");
	j = help_open_here();
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	ck_assert_int_eq(journal_lookup(reader, HELP_UID, &row.txid, count_row,
			     &rows),
	    -EUCLEAN);
	journal_reader_close(reader);
	help_close(j);
	help_row_done(&row);
}
