/*
 * Proves that the index of history is kept up. A missing, damaged, torn or
 * foreign index, or an index ahead of the journal, is built again and finds the
 * same rows.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/journal/journal_index.h"
#include "tests/lib/journal_help.h"
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

static size_t count(const char *told)
{
	size_t nr = 0;

	while ((told = strchr(told, '@')) != NULL) {
		told++;
		nr++;
	}
	return nr;
}

static size_t count_ref(const char *ref)
{
	return count(fixture_log(NULL, ref, false, 0, NULL));
}

/* ---- the index ---- */

enum damage {
	NONE,
	MISSING,
	EMPTY,
	NO_DATABASE,
	HALF,
	OVERWRITTEN,
	WAL_LOST,
	OTHER_SCHEMA,
	FORMER_SCHEMA,
	OTHER_JOURNAL,
	AHEAD,
	OTHER_ROWS,
	NR_DAMAGES
};

static void overwrite(const char *name, off_t from, size_t len)
{
	char *junk = malloc(len);
	int fd = openat(tmp_fd, name, O_RDWR);

	ck_assert_int_ge(fd, 0);
	memset(junk, 0x55, len);
	ck_assert_int_eq(pwrite(fd, junk, len, from), (ssize_t)len);
	close(fd);
	free(junk);
}

/* Without the rows of "change", an index that is used in spite of the damage
 * finds nothing. */
static void damage(enum damage how)
{
	static const char *const sql[NR_DAMAGES] = {
		[WAL_LOST] = "UPDATE meta SET last = 7;"
			     " DELETE FROM change WHERE lsn > 7",
		[OTHER_SCHEMA] = "UPDATE meta SET version = 99;"
				 " DELETE FROM change",
		[FORMER_SCHEMA] = "ALTER TABLE meta DROP COLUMN version",
		[OTHER_JOURNAL] = "UPDATE meta SET journal = zeroblob(16);"
				  " DELETE FROM change",
		[AHEAD] = "UPDATE meta SET last = 1000000",
		[OTHER_ROWS] = "UPDATE meta SET last_txid = zeroblob(16);"
			       " DELETE FROM change",
	};

	if (sql[how] != NULL)
		fixture_sql("history.db", sql[how]);
	else if (how == MISSING)
		ck_assert_int_eq(unlinkat(tmp_fd, "history.db", 0), 0);
	else if (how == EMPTY)
		tmp_put("history.db", "");
	else if (how == NO_DATABASE)
		tmp_put("history.db", "these are not the bytes of a database");
	else if (how == HALF)
		tmp_run("truncate -s 8192 history.db");
	else if (how == OVERWRITTEN)
		/* The first pages of the tables. */
		overwrite("history.db", 4096, 3 * 4096);
}

START_TEST(whatever_befell_it_it_finds_the_same)
{
	add_rows(600);
	fixture_history();
	fixture_index();
	ck_assert_uint_eq(history_indexed(fixture.h), 600);
	history_free(fixture.h);
	fixture.h = NULL;
	damage((enum damage)_i);
	fixture_history();
	/* While the index is behind, or damaged without notice. */
	ck_assert_uint_eq(count_ref("refs/heads/x"), 200);
	fixture_index();
	ck_assert_uint_eq(count_ref("refs/heads/x"), 200);
	add_rows(3);
	ck_assert_uint_eq(count_ref("refs/heads/x"), 201);
	fixture_index();
	ck_assert_uint_eq(history_indexed(fixture.h), 603);
	ck_assert_uint_eq(count_ref("refs/heads/x"), 201);
}
END_TEST

/* The damage is seen only by a read. The question is answered anyway. */
START_TEST(damage_under_way_costs_no_answer)
{
	add_rows(600);
	fixture_history();
	fixture_index();
	history_free(fixture.h);
	fixture.h = NULL;
	fixture_history();
	add_rows(3);
	fixture_index();
	/* The pages in memory are dropped with the connection. */
	history_free(fixture.h);
	fixture.h = NULL;
	fixture_history();
	ck_assert_int_eq(history_index(fixture.h, 600), 0);
	overwrite("history.db", 2 * 4096, 8 * 4096);
	ck_assert_uint_eq(count_ref("refs/heads/x"), 201);
	fixture_index();
	ck_assert_uint_eq(history_indexed(fixture.h), 603);
	ck_assert_uint_eq(count_ref("refs/heads/x"), 201);
}
END_TEST

/* More rows than a segment has, and more than a key returns at once. */
START_TEST(segments_join)
{
	const uint64_t many =
	    (UINT64_C(1) << JOURNAL_INDEX_SEGMENT_BITS) + 3000;
	struct store_question *ask;
	size_t i, nr;

	fixture_updates(repo, (unsigned)many, "refs/heads/main",
	    "refs/heads/main");
	fixture_update(repo, "refs/heads/last");
	fixture_history();
	fixture_index();
	for (i = 0; i < 4; i++) {
		ask = fixture_ask(REFD_VERB_LOG);
		ask->req.select.patterns[0] = "refs/heads/main";
		ask->req.select.nr_patterns = i % 2;
		ask->req.select.reverse = i / 2;
		ask->req.select.has_after = true;
		ask->req.select.after.lsn = many - 6000;
		nr = count(fixture_told(ask, NULL));
		ck_assert_uint_eq(nr, i % 2 == 0 ? 6001 : 6000);
	}
	ck_assert_uint_eq(count_ref("refs/heads/last"), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("history_keep");
	TCase *tc = tcase_create("history_keep");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, fixture_teardown);
	tcase_add_loop_test(tc, whatever_befell_it_it_finds_the_same, 0,
	    NR_DAMAGES);
	tcase_add_test(tc, damage_under_way_costs_no_answer);
	tcase_add_test(tc, segments_join);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
