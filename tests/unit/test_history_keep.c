/*
 * Proves that the index of history is kept up. A missing, damaged, torn or
 * foreign index, or an index ahead of the journal, is built again and finds the
 * same rows. A damaged row, or a full disk, hides no change in silence.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/history/history_internal.h"
#include "daemon/store/journal/journal_index_internal.h"
#include "tests/lib/history_fixture.h"
#include "tests/lib/journal_help.h"
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

CASE(.setup = setup, .teardown = fixture_teardown, .seconds = 120);

TEST(whatever_befell_it_it_finds_the_same, .times = NR_DAMAGES)
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

/* The damage is seen only by a read. The question is answered anyway. */
TEST(damage_under_way_costs_no_answer)
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
	ck_assert_int_eq(fixture_index_upto(600), 0);
	overwrite("history.db", 2 * 4096, 8 * 4096);
	ck_assert_uint_eq(count_ref("refs/heads/x"), 201);
	fixture_index();
	ck_assert_uint_eq(history_indexed(fixture.h), 603);
	ck_assert_uint_eq(count_ref("refs/heads/x"), 201);
}

/* ---- failures ---- */

/* One answer, the newest first with BEFORE: how many changes, and the record of
 * the first; or the status. */
static const char *one_answer(uint64_t after, uint64_t before)
{
	struct store_question *ask = fixture_ask(REFD_VERB_LOG);
	struct refd_selection *s = &ask->req.select;
	static char said[100];
	const struct refd_answer *ans = &ask->answer;

	s->has_after = after != 0;
	s->after.lsn = after;
	s->reverse = s->has_before = before != 0;
	s->before.lsn = before;
	ck_assert(fixture_answer(ask));
	if (ans->kind == REFD_ANSWER_REFUSED)
		snprintf(said, sizeof(said), "%s",
		    refd_status_name(ans->status));
	else
		snprintf(said, sizeof(said), "%zu from %u", ans->nr_changes,
		    ans->nr_changes == 0 ?
			0 :
			(unsigned)ans->changes[0].record->lsn);
	fixture_free(ask);
	return said;
}

/* How many changes are told before an answer is refused; -1: none is. */
static int nr_until_refused(const char *pattern)
{
	struct store_question *ask = fixture_ask(REFD_VERB_LOG);
	struct refd_selection *s = &ask->req.select;
	bool more = true;
	int nr = 0;

	s->patterns[s->nr_patterns++] = pattern;
	while (more && fixture_answer(ask) &&
	    ask->answer.kind == REFD_ANSWER_RECORDS) {
		nr += (int)ask->answer.nr_changes;
		more = ask->answer.more;
		s->has_after = true;
		s->after = ask->answer.next;
		refd_answer_done(&ask->answer);
	}
	fixture_free(ask);
	return more ? nr : -1;
}

/* No answer passes over a damaged row in silence, whatever it looks for. The
 * rows before and behind the damage are told. */
TEST(a_damaged_row_hides_no_other, .times = 2)
{
	static const char *const sql[] = {
		"UPDATE record SET body = zeroblob(10) WHERE lsn = 300",
		"UPDATE record SET txid = zeroblob(3) WHERE lsn = 300",
	};
	int i;

	add_rows(600);
	fixture_history();
	fixture_sql("journal.db", sql[_i]);
	for (i = 0; i < 2; i++) {
		fixture_index();
		ck_assert_uint_eq(history_indexed(fixture.h), 600);
		ck_assert_str_eq(one_answer(0, 0), "299 from 1");
		ck_assert_str_eq(one_answer(299, 0), "io");
		ck_assert_str_eq(one_answer(300, 0), "300 from 301");
		ck_assert_str_eq(one_answer(0, 601), "300 from 600");
		ck_assert_str_eq(one_answer(0, 301), "io");
		ck_assert_int_eq(nr_until_refused("refs/heads/x"), 100);
		ck_assert_int_eq(nr_until_refused("refs/heads/none"), 0);
		/* The same index again. */
		fixture_history();
	}
}

/* Such an index is not begun anew at each start. */
TEST(an_index_ends_with_a_damaged_row)
{
	add_rows(300);
	fixture_history();
	fixture_sql("journal.db",
	    "UPDATE record SET body = zeroblob(10) WHERE lsn = 300");
	fixture_index();
	fixture_history();
	fixture_index_upto(1);
	ck_assert_uint_eq(history_indexed(fixture.h), 300);
}

#define PAGE_BYTES 4096
#define LEAF       0x0d /* the kind of a page of a table with rows */

/* Has the page a cell for row LSN, which is from 128 to 16383?
 * (https://www.sqlite.org/fileformat2.html, 1.6.) */
static bool has_row(const uint8_t *page, unsigned lsn)
{
	unsigned i, at, nr = page[3] * 256U + page[4];

	for (i = 0; page[0] == LEAF && i < nr; i++) {
		at = page[8 + 2 * i] * 256U + page[9 + 2 * i];
		at += page[at] < 128 ? 1 : 2;
		if (page[at] == (128 | lsn >> 7) && page[at + 1] == lsn % 128)
			return true;
	}
	return false;
}

/* Nothing is in the WAL. */
static void damage_page_of(unsigned lsn)
{
	int fd = openat(tmp_fd, "journal.db", O_RDONLY);
	uint8_t page[PAGE_BYTES];
	off_t at = 0;

	while (pread(fd, page, sizeof(page), at) == PAGE_BYTES &&
	    !has_row(page, lsn))
		at += PAGE_BYTES;
	close(fd);
	overwrite("journal.db", at, PAGE_BYTES);
}

/* A large index is minutes of work, and the error is not the index's. The
 * administrator is told. */
TEST(a_bad_page_of_the_journal_spares_the_index)
{
	struct journal_index *index;
	uint64_t indexed;
	char *why;

	add_rows(600);
	ck_assert_int_eq(journal_close(fixture.j), 0);
	fixture_open_journal();
	fixture_history();
	while (fixture_index_upto(400) > 0)
		;
	index = fixture.h->index;
	damage_page_of(500);
	while (fixture_index_upto(600) > 0)
		;
	ck_assert_int_lt(fixture_index_upto(600), 0);
	ck_assert_ptr_eq(fixture.h->index, index);
	indexed = history_indexed(fixture.h);
	ck_assert_uint_ge(indexed, 400);
	ck_assert_uint_lt(indexed, 500);
	ck_assert_ptr_nonnull(strstr(one_answer(0, 401), " from 400"));
	ck_assert_str_eq(one_answer(0, 601), "io");
	ck_assert(journal_is_damaged(fixture.j));
	why = journal_damage(fixture.j);
	ck_assert_ptr_nonnull(strstr(why, "a page of "));
	ck_assert_ptr_nonnull(strstr(why, "refd recover --discard"));
	free(why);
	/* Nor is it the index's if the row is the last indexed one. */
	damage_page_of((unsigned)indexed);
	fixture_history();
	ck_assert_int_lt(fixture_index_upto(600), 0);
	ck_assert_uint_eq(history_indexed(fixture.h), indexed);
}

/* On a full disk: what the index has is told, and nothing is left out in
 * silence. */
TEST(without_room_the_newest_are_refused)
{
	add_rows(300);
	fixture_history();
	fixture_index();
	ck_assert_int_eq(sqlite3_exec(fixture.h->index->db,
			     "PRAGMA max_page_count = 1", NULL, NULL, NULL),
	    SQLITE_OK);
	add_rows(3000);
	while (fixture_index_upto(3300) > 0)
		;
	ck_assert_int_eq(fixture_index_upto(3300), -ENOSPC);
	ck_assert_uint_ge(history_indexed(fixture.h), 300);
	ck_assert_str_eq(one_answer(0, 301), "300 from 300");
	ck_assert_str_eq(one_answer(0, 3301), "nospace");
	ck_assert_int_eq(nr_until_refused("refs/heads/none"), 0);
	/* As soon as there is room. */
	ck_assert_int_eq(sqlite3_exec(fixture.h->index->db,
			     "PRAGMA max_page_count = 1000000", NULL, NULL,
			     NULL),
	    SQLITE_OK);
	fixture_index();
	ck_assert_int_eq(nr_until_refused("refs/heads/none"), -1);
}

static int no_descriptor(const struct sys *sys, int dir, const char *path,
    int flags, unsigned mode)
{
	(void)sys;
	(void)dir;
	(void)path;
	(void)flags;
	(void)mode;
	return -EMFILE;
}

/* A large index is minutes of work. */
TEST(what_says_nothing_about_an_index_spares_it)
{
	add_rows(600);
	fixture_history();
	fixture_index();
	fixture_history();
	fixture.sys.openat = no_descriptor;
	ck_assert_int_eq(fixture_index_upto(1), -EMFILE);
	fixture.sys.openat = sys_kernel.openat;
	fixture.mono_ns += 2000000000;
	ck_assert_int_eq(fixture_index_upto(1), 0);
	ck_assert_uint_eq(history_indexed(fixture.h), 600);
}

/* More rows than a segment has, and more than a key returns at once. */
TEST(segments_join)
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
