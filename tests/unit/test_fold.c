/*
 * Proves what the fold of the log knows of each ref (fold.h): the newest row
 * first, no member that was taken back, whether the abort record refers to the
 * row or to a deferred copy of the row, and nothing behind the row that ends
 * the reading. Rows that were written since then are read on their own, and
 * rows that were trimmed since then are left out. Without memory the fold
 * fails, and leaves no row out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/fold.h"
#include "tests/lib/failing_malloc.h"
#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct journal *journal;
static struct fold fold;
static char seen[256];
static unsigned nr_rows, most;
/* -1: none fails. */
static long allocations, fail_at = -1;

#if CAN_FAIL

static bool may_allocate(void)
{
	return fail_at < 0 || allocations++ != fail_at;
}

#endif

static void setup(void)
{
	tmp_setup();
	journal = help_open_here();
}

static void teardown(void)
{
	help_close(journal);
	tmp_teardown();
}

/* Writes a row of the refs NAMES, one letter each, with their places there as
 * indices. Returns the LSN. */
static uint64_t put(enum journal_kind kind, uint64_t repo, uint64_t refers_to,
    const char *names)
{
	struct record_member m[8] = { 0 };
	char letters[8][2] = { 0 };
	struct record rec = { .committer = "",
		.message = "",
		.members = m,
		.nr_members = strlen(names),
		.nr_updates = 8 };
	struct journal_row row = { .kind = kind,
		.repo = repo,
		.refers_to = refers_to,
		.final = true };
	uint8_t *body;
	uint32_t i;

	for (i = 0; names[i] != '\0'; i++) {
		letters[i][0] = names[i];
		m[i] = (struct record_member){ .index = i,
			.name = letters[i],
			.worktree = "",
			.action =
			    names[i] == '-' ? RECORD_NOTHING : RECORD_WRITE };
	}
	body = record_encode(&rec, &row.len);
	row.body = body;
	refd_txid_make(&row.txid);
	ck_assert_int_eq(journal_commit(journal, &row, 1, true), 0);
	free(body);
	return row.lsn;
}

static enum fold_want wants(void *arg, const struct journal_row *row)
{
	(void)arg;
	if (nr_rows++ == most)
		return FOLD_STOP;
	return row->repo == 1 ? FOLD_TAKE : FOLD_SKIP;
}

static int note(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	size_t len = strlen(seen);

	(void)arg;
	if (rec->members == NULL)
		return -EINVAL;
	snprintf(seen + len, sizeof(seen) - len, "%llu%s ",
	    (unsigned long long)row->lsn, m->name);
	return m->name[0] == 'z';
}

static void read_rows(uint64_t after, uint64_t before)
{
	nr_rows = 0;
	ck_assert_int_eq(fold_rows(&fold, after, before), 0);
}

/* The rows of the refs of repository 1, each with LSN and ref. */
static const char *folded(void)
{
	struct fold_ref *ref, *next;
	struct fold_repo *repo;

	seen[0] = '\0';
	repo = fold_repo(&fold, 1);
	HASH_ITER(hh, repo->refs, ref, next)
		ck_assert_int_eq(fold_each(&fold, ref, note, NULL),
		    ref->name[0] == 'z');
	return seen;
}

static void open_fold(void)
{
	fold = (struct fold){ .wants = wants };
	most = 1000000;
	ck_assert_int_eq(journal_reader_open(journal, &fold.reader), 0);
}

static void close_fold(void)
{
	fold_done(&fold);
	ck_assert_uint_eq(fold.bytes, 0);
	journal_reader_close(fold.reader);
}

CASE(.setup = setup, .teardown = teardown);

TEST(newest_first)
{
	put(JOURNAL_SLICE, 1, 0, "a-bz");
	put(JOURNAL_SLICE, 2, 0, "a");
	put(JOURNAL_SLICE, 1, 0, "az");
	open_fold();
	read_rows(0, UINT64_MAX);
	ck_assert_str_eq(folded(), "3a 1a 3z 1b ");
	ck_assert_uint_eq(fold_repo(&fold, 1)->newest, 3);
	ck_assert_ptr_nonnull(fold_ref(fold_repo(&fold, 1), "", "b"));
	ck_assert_ptr_null(fold_ref(fold_repo(&fold, 1), "w", "b"));
	close_fold();
	open_fold();
	most = 2;
	read_rows(0, UINT64_MAX);
	ck_assert_uint_eq(nr_rows, 3);
	ck_assert_str_eq(folded(), "3a 3z ");
	close_fold();
}

TEST(taken_back)
{
	put(JOURNAL_SLICE, 1, 0, "abc");
	put(JOURNAL_SLICE, 1, 0, "abc");
	put(JOURNAL_ABORT, 1, 2, "ab");
	open_fold();
	read_rows(0, UINT64_MAX);
	ck_assert_str_eq(folded(), "2c 1c 1a 1b ");
	/* What came later is read on its own. */
	put(JOURNAL_ABORT, 1, 1, "a");
	put(JOURNAL_SLICE, 1, 0, "bd");
	put(JOURNAL_SLICE, 1, 0, "b");
	read_rows(3, UINT64_MAX);
	ck_assert_uint_eq(nr_rows, 3);
	ck_assert_str_eq(folded(), "2c 1c 6b 5b 1b 5d ");
	close_fold();
}

/* Recovery deferred the row twice, and gave the second copy up. */
TEST(a_deferred_copy_taken_back)
{
	put(JOURNAL_SLICE, 1, 0, "ab");
	put(JOURNAL_DEFERRED, 1, 1, "ab");
	put(JOURNAL_DEFERRED_END, 1, 2, "");
	put(JOURNAL_DEFERRED, 1, 1, "ab");
	put(JOURNAL_ABORT, 1, 3, "a");
	open_fold();
	read_rows(0, UINT64_MAX);
	ck_assert_str_eq(folded(), "1b ");
	close_fold();
}

/* The count has every allocation: the repository, the table of refs, a ref with
 * its name, and the room for rows. */
TEST(bytes)
{
	size_t empty, one, two;

	put(JOURNAL_SLICE, 1, 0, "a");
	put(JOURNAL_SLICE, 1, 0, "b");
	open_fold();
	fold_drop(&fold, fold_repo(&fold, 1));
	ck_assert_uint_eq(fold.bytes, 0);
	fold_repo(&fold, 1);
	empty = fold.bytes;
	ck_assert_uint_gt(empty, 500);
	read_rows(1, UINT64_MAX);
	one = fold.bytes - empty;
	ck_assert_uint_eq(one,
	    sizeof(struct fold_ref) + sizeof("/b") + 2 * sizeof(uint64_t));
	read_rows(0, 2);
	two = fold.bytes;
	ck_assert_uint_eq(two, empty + 2 * one);
	put(JOURNAL_SLICE, 1, 0, "bbb");
	read_rows(2, UINT64_MAX);
	ck_assert_uint_eq(fold.bytes, two + 2 * sizeof(uint64_t));
	close_fold();
}

/* More rows than one read of the journal has. */
TEST(many_rows)
{
	struct fold_ref *ref;
	unsigned i;

	for (i = 0; i < 600; i++)
		put(JOURNAL_SLICE, 1 + i / 599, 0, "a");
	open_fold();
	read_rows(0, UINT64_MAX);
	ck_assert_uint_eq(nr_rows, 600);
	ref = fold_ref(fold_repo(&fold, 1), "", "a");
	ck_assert_uint_eq(ref->nr, 599);
	ck_assert_uint_eq(ref->lsns[0], 599);
	ck_assert_uint_eq(ref->lsns[598], 1);
	close_fold();
}

/* The newest ones are of a repository that nobody wants. */
TEST(many_rows_of_another)
{
	unsigned i;

	put(JOURNAL_SLICE, 1, 0, "a");
	for (i = 0; i < 300; i++)
		put(JOURNAL_SLICE, 2, 0, "a");
	open_fold();
	read_rows(0, UINT64_MAX);
	ck_assert_uint_eq(nr_rows, 301);
	ck_assert_str_eq(folded(), "1a ");
	close_fold();
}

TEST(trimmed_since)
{
	const struct journal_chain upto = { .lsn = 1 };
	static const struct refd_txid nobody;

	put(JOURNAL_SLICE, 1, 0, "a");
	put(JOURNAL_SLICE, 1, 0, "a");
	open_fold();
	read_rows(0, UINT64_MAX);
	ck_assert_int_eq(journal_forget(journal, 1, true), 0);
	ck_assert_int_eq(journal_trim(journal, &upto, NULL, 0, &nobody), 0);
	ck_assert_str_eq(folded(), "2a ");
	close_fold();
}

/* The rows of each ref of repository 1, and "!" where this failed. */
static const char *folded_anyway(void)
{
	struct fold_ref *ref, *next;

	seen[0] = '\0';
	HASH_ITER(hh, fold_repo(&fold, 1)->refs, ref, next)
		if (fold_each(&fold, ref, note, NULL) < 0)
			strcat(seen, "!");
	return seen;
}

static void put_some(void)
{
	put(JOURNAL_SLICE, 1, 0, "ab");
	put(JOURNAL_DEFERRED, 1, 1, "ab");
	put(JOURNAL_ABORT, 1, 2, "a");
	put(JOURNAL_SLICE, 1, 0, "b");
}

/* One allocation after the other fails, until none is left to fail. */
TEST(reading_without_memory)
{
	long at;
	int r;

	put_some();
	do {
		open_fold();
		nr_rows = 0;
		at = ++fail_at;
		allocations = 0;
		r = fold_rows(&fold, 0, UINT64_MAX);
		fail_at = -1;
		ck_assert_int_le(r, 0);
		if (r == 0)
			ck_assert_str_eq(folded_anyway(), "4b 1b ");
		close_fold();
		fail_at = at;
	} while (allocations > at);
	fail_at = -1;
}

TEST(a_row_again_without_memory)
{
	long at = -1;

	put_some();
	open_fold();
	read_rows(0, UINT64_MAX);
	do {
		fold.row.lsn = 0;
		allocations = 0;
		fail_at = ++at;
		folded_anyway();
		fail_at = -1;
		if (strchr(seen, '!') == NULL)
			ck_assert_str_eq(seen, "4b 1b ");
		ck_assert_str_eq(folded_anyway(), "4b 1b ");
	} while (allocations > at);
	close_fold();
}
