/*
 * Proves that rows which wait at a path do not make later rows slow, because a
 * follower asks for the place of each row in its only thread.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define MANY  20000
#define TIMES 50

static const uint8_t ours[16] = "a group", first[16] = { 1 },
		     second[16] = { 2 };

/* Puts off NR rows of REPO at PATH, from LSN on. */
static void put_off(struct journal *j, uint64_t lsn, const uint8_t *repo,
    const char *path, size_t nr)
{
	struct journal_row *rows = calloc(nr, sizeof(*rows));
	size_t i;

	for (i = 0; i < nr; i++)
		rows[i] = (struct journal_row){ .kind = JOURNAL_WAITING,
			.shared_lsn = lsn + i,
			.waiting_repo = repo,
			.waiting_path = (const uint8_t *)path,
			.waiting_path_len = strlen(path),
			.body = (const uint8_t *)path,
			.len = strlen(path) };
	ck_assert_int_eq(journal_commit(j, rows, nr, true), 0);
	free(rows);
}

static bool has_place(struct journal *j, const uint8_t *repo)
{
	struct journal_waiting row;

	ck_assert_int_eq(journal_read_waiting(j, repo, &row), 0);
	free(row.bytes);
	return row.has_place;
}

/* The processor time of TIMES rows of the first repository at PATH. */
static int64_t ns_of_rows(struct journal *j, const char *path)
{
	struct timespec began, ended;
	int i;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
	for (i = 0; i < TIMES; i++)
		ck_assert_int_eq(journal_take_place(j, first,
				     (const uint8_t *)path, strlen(path)),
		    0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
	return (ended.tv_sec - began.tv_sec) * INT64_C(1000000000) +
	    ended.tv_nsec - began.tv_nsec;
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(many_rows_wait_at_a_path)
{
	struct journal *j = help_open_here();

	journal_set_shared(j, ours);
	put_off(j, 1, first, "few", 1);
	put_off(j, 2, first, "many", MANY);
	put_off(j, 2 + MANY, second, "many", 1);
	ns_of_rows(j, "few");
	ck_assert_int_lt(ns_of_rows(j, "many"), 10 * ns_of_rows(j, "few"));
	ck_assert(has_place(j, first));
	ck_assert(!has_place(j, second));
	help_close(j);
}
