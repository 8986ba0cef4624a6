/*
 * Proves the rules of the journal for a group of nodes: the LSNs of the group
 * ascend, the highest LSN and the uuid outlive the rows, nothing is bound
 * before the first row, and a new journal can begin with a given LSN, and with
 * the values of a copy. A row
 * that waits has its turn, and is there until it comes as a row, once. A row
 * gives its refs their values, and nothing else does. A journal that has left
 * its group is of no group until a new group goes on. A journal that has joined
 * a group knows since when it has the outcomes of ids.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/record.h"
#include "proto/left_log.h"
#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static const uint8_t none[16], ours[16] = "a group", others[16] = "another";

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

static int commit(unsigned number, uint64_t shared_lsn)
{
	struct journal_row row = help_row(number, 16);
	int r;

	row.shared_lsn = shared_lsn;
	r = journal_commit(j, &row, 1, true);
	help_row_done(&row);
	return r;
}

static void assert_group(uint64_t lsn, const uint8_t *uuid)
{
	uint8_t found[16];

	ck_assert_uint_eq(journal_shared_lsn(j), lsn);
	journal_shared_uuid(j, found);
	ck_assert_mem_eq(found, uuid, sizeof(found));
}

/* The new journal gets the rows up to LSN. */
static void start_with(uint64_t lsn)
{
	ck_assert_int_eq(journal_join(j, lsn, 0, NULL, NULL), 0);
}

/* ---- rows ---- */

CASE(.setup = setup, .teardown = teardown);

TEST(the_group_outlives_its_rows)
{
	const struct journal_chain upto = { .lsn = 3 };
	static const struct refd_txid nobody;

	start_with(69);
	assert_group(69, none);
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(1, 70), 0);
	ck_assert_int_eq(commit(2, 71), 0);
	ck_assert_int_eq(commit(3, 0), 0);
	assert_group(71, ours);
	ck_assert_int_eq(help_ask("SELECT group_lsn FROM record WHERE lsn = 2"),
	    71);
	help_reopen(j);
	assert_group(71, ours);

	ck_assert_int_eq(journal_forget(j, 3, true), 0);
	ck_assert_int_eq(journal_trim(j, &upto, NULL, 0, &nobody), 0);
	help_close(j);
	ck_assert_int_eq(help_ask("SELECT count(*) FROM record"), 0);
	j = help_open_here();
	assert_group(71, ours);
}

TEST(nothing_is_bound_before_the_first_row)
{
	journal_set_shared(j, others);
	ck_assert_int_eq(commit(1, 0), 0);
	assert_group(0, none);
	restart();
	assert_group(0, none);
	journal_set_shared(j, ours);
	/* The wish survives. */
	help_reopen(j);
	assert_group(0, none);
	ck_assert_int_eq(commit(2, 1), 0);
	assert_group(1, ours);
}

TEST(wrong_rows_are_refused)
{
	struct journal_row rows[] = { help_row(8, 16), help_row(9, 16) };

	start_with(4);
	/* Of no group. */
	ck_assert_int_eq(commit(1, 5), -EINVAL);
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(1, 5), 0);
	ck_assert_int_eq(commit(2, 5), -EINVAL);
	ck_assert_int_eq(commit(2, 4), -EINVAL);
	/* A gap. */
	ck_assert_int_eq(commit(2, 7), -EINVAL);
	/* All rows of a call, or none. */
	rows[0].shared_lsn = rows[1].shared_lsn = 6;
	ck_assert_int_eq(journal_commit(j, rows, 2, true), -EINVAL);
	rows[1].shared_lsn = 7;
	rows[1].kind = JOURNAL_ABORT;
	ck_assert_int_eq(journal_commit(j, rows, 2, true), -EINVAL);
	journal_set_shared(j, others);
	ck_assert_int_eq(commit(2, 6), -EINVAL);
	assert_group(5, ours);
	ck_assert_uint_eq(journal_last_lsn(j), 1);
	/* The journal goes on. */
	ck_assert_int_eq(commit(2, 0), 0);
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(3, 6), 0);
	assert_group(6, ours);
	help_row_done(&rows[0]);
	help_row_done(&rows[1]);
}

/* ---- rows that wait ---- */

static int put_off(uint64_t shared_lsn, uint8_t repo, const char *path)
{
	const uint8_t uuid[16] = { repo };
	struct journal_row row = { .kind = JOURNAL_WAITING,
		.shared_lsn = shared_lsn,
		.waiting_repo = uuid,
		.waiting_path = (const uint8_t *)path,
		.waiting_path_len = strlen(path),
		.body = (const uint8_t *)path,
		.len = strlen(path) };

	return journal_commit(j, &row, 1, true);
}

static void assert_waits(uint8_t repo, uint64_t lsn, const char *path,
    bool has_place)
{
	const uint8_t uuid[16] = { repo };
	struct journal_waiting row;

	ck_assert_int_eq(journal_read_waiting(j, uuid, &row), 0);
	ck_assert_uint_eq(row.lsn, lsn);
	ck_assert_mem_eq(row.repo, uuid, sizeof(uuid));
	ck_assert_uint_eq(row.len, strlen(path));
	ck_assert_mem_eq(row.bytes, path, row.len);
	ck_assert_int_eq(row.has_place, has_place);
	free(row.bytes);
}

static void assert_waits_not(uint8_t repo)
{
	const uint8_t uuid[16] = { repo };
	struct journal_waiting row;

	ck_assert_int_eq(journal_read_waiting(j, uuid, &row), -ENOENT);
}

static int add_first(void *arg, const struct journal_waiting *row)
{
	uint64_t *sum = arg;

	*sum = *sum * 100 + row->repo[0] * 10 + row->lsn;
	return 0;
}

static void assert_first(uint64_t wanted)
{
	uint64_t sum = 0;

	ck_assert_int_eq(journal_each_waiting(j, add_first, &sum), 0);
	ck_assert_uint_eq(sum, wanted);
}

TEST(rows_wait)
{
	ck_assert_int_eq(put_off(1, 1, "x"), -EINVAL); /* of no group */
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(1, 1), 0);
	ck_assert_int_eq(put_off(3, 1, "x"), -EINVAL); /* a gap */
	ck_assert_int_eq(put_off(1, 1, "x"), -EINVAL); /* is there */
	ck_assert_int_eq(put_off(2, 7, "two"), 0);
	ck_assert_int_eq(put_off(3, 8, "three"), 0);
	ck_assert_int_eq(put_off(4, 7, "four"), 0);
	assert_group(4, ours);
	ck_assert_uint_eq(journal_last_lsn(j), 1);
	assert_waits(7, 2, "two", true);
	assert_first(7283);
	help_reopen(j);
	ck_assert_int_eq(commit(2, 5), 0);
	ck_assert_int_eq(commit(3, 2), 0); /* comes late */
	assert_group(5, ours);
	assert_waits(7, 4, "four", true);
	ck_assert_int_eq(commit(4, 2), -EINVAL); /* and once */
	ck_assert_int_eq(commit(4, 5), -EINVAL);
	restart();
	assert_group(5, ours);
	assert_first(8374);
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(4, 4), 0);
	assert_waits_not(7);
	assert_waits(8, 3, "three", true);
}

TEST(rows_that_wait_leave_their_places)
{
	static const char *const paths[] = { "a", "a/b", "a/b/c", "a/b0", "a.b",
		"a/bc/d", "b" };
	static const bool leave[] = { true, true, true, false, false, false,
		false };
	uint8_t i;

	journal_set_shared(j, ours);
	for (i = 0; i < 7; i++)
		ck_assert_int_eq(put_off(i + 1u, i, paths[i]), 0);
	ck_assert_int_eq(put_off(8, 9, "a/b"), 0);
	ck_assert_int_eq(journal_take_place(j, (const uint8_t[16]){ 9 },
			     (const uint8_t *)"a/b", 3),
	    0);
	for (i = 0; i < 7; i++)
		assert_waits(i, i + 1u, paths[i], !leave[i]);
	assert_waits(9, 8, "a/b", true);
}

/* ---- the values of refs ---- */

/* Row LSN of the group gives REF of repository 1 a value, TARGET, or nothing
 * (0 and NULL). */
static int give(uint64_t lsn, const char *ref, uint8_t value,
    const char *target)
{
	struct record_member m = { .status = REFD_OK,
		.worktree = "",
		.name = ref,
		.action = RECORD_DELETE,
		.new_oid = { .bytes = { value } },
		.target = target };
	const struct record rec = { .members = &m, .nr_members = 1 };
	struct journal_row row = help_row((unsigned)lsn, 16);
	int r;

	if (value != 0 || target != NULL)
		m.action = RECORD_WRITE;
	row.repo = 1;
	row.shared_lsn = lsn;
	row.record = &rec;
	r = journal_commit(j, &row, 1, true);
	help_row_done(&row);
	return r;
}

/* LSN 0: the group has not changed the ref. */
static void assert_value(uint64_t repo, const char *ref, uint64_t lsn,
    uint8_t value, const char *target)
{
	const struct refd_oid oid = { .bytes = { value } };
	struct journal_value v;

	ck_assert_int_eq(journal_find_value(j, repo, ref, &v), lsn != 0);
	ck_assert_uint_eq(v.lsn, lsn);
	ck_assert_int_eq(v.exists, value != 0);
	ck_assert(refd_oid_eq(&v.oid, &oid));
	if (target != NULL)
		ck_assert_str_eq(v.target, target);
	else
		ck_assert_ptr_null(v.target);
	free(v.target);
}

TEST(rows_give_values_to_refs)
{
	journal_set_shared(j, ours);
	ck_assert_int_eq(give(1, "refs/heads/x", 1, NULL), 0);
	ck_assert_int_eq(give(2, "refs/heads/y", 2, NULL), 0);
	ck_assert_int_eq(give(3, "refs/heads/y", 0, NULL), 0);
	ck_assert_int_eq(give(4, "refs/s", 0, "refs/heads/x"), 0);
	ck_assert_int_eq(give(5, "HEAD", 0, "refs/heads/x"), 0);
	/* A refused row, and a row of this machine alone, give nothing. */
	ck_assert_int_eq(give(5, "refs/heads/x", 9, NULL), -EINVAL);
	ck_assert_int_eq(give(0, "refs/heads/x", 9, NULL), 0);
	help_reopen(j);
	restart();
	assert_value(1, "refs/heads/x", 1, 1, NULL);
	assert_value(1, "refs/heads/y", 3, 0, NULL);
	assert_value(1, "refs/s", 4, 0, "refs/heads/x");
	assert_value(1, "HEAD", 0, 0, NULL);
	assert_value(1, "refs/heads/z", 0, 0, NULL);
	assert_value(2, "refs/heads/x", 0, 0, NULL);
	journal_set_shared(j, ours);
	ck_assert_int_eq(give(6, "refs/s", 3, NULL), 0);
	assert_value(1, "refs/s", 6, 3, NULL);
	ck_assert_int_eq(journal_leave(j), 0);
	assert_value(1, "refs/heads/x", 0, 0, NULL);
}

/* Only a ref that exists is alive. A failed journal has no answer, which must
 * not look like a value. */
TEST(a_failed_journal_gives_no_value)
{
	char found[REFD_REFNAME_MAX + 1], *why = NULL;
	struct journal_place at = { .repo = 0 };
	struct journal_value v;

	journal_set_shared(j, ours);
	ck_assert_int_eq(journal_has_living_value(j, 1), 0);
	ck_assert_int_eq(give(1, "refs/heads/x", 0, NULL), 0);
	ck_assert_int_eq(journal_has_living_value(j, 1), 0);
	ck_assert_int_eq(give(2, "refs/heads/y", 2, NULL), 0);
	ck_assert_int_eq(journal_has_living_value(j, 1), 1);
	ck_assert_int_eq(journal_has_living_value(j, 2), 0);
	tmp_run("mv journal.db away");
	ck_assert_int_lt(journal_reopen(j, &why), 0);
	free(why);
	ck_assert_int_eq(journal_has_living_value(j, 1), -EIO);
	ck_assert_int_eq(journal_find_value(j, 1, "refs/heads/y", &v), -EIO);
	ck_assert_int_eq(journal_next_value(j, &at, &v), -EIO);
	ck_assert_int_eq(journal_find_value_around(j, 1, "refs/heads", found),
	    -EIO);
	tmp_run("mv away journal.db");
	help_reopen(j);
	assert_value(1, "refs/heads/y", 2, 2, NULL);
}

/* ---- damage ---- */

static void assert_damaged(const char *change, const char *back)
{
	char *why;

	help_ask(change);
	ck_assert_int_eq(help_try_open(&sys_kernel, tmp_root, NULL, &why),
	    -EBADMSG);
	ck_assert_ptr_nonnull(strstr(why, "table 'meta'"));
	free(why);
	help_ask(back);
}

TEST(the_seal_covers_the_group)
{
	/* A new journal has a seal, too. */
	help_close(j);
	assert_damaged("UPDATE meta SET group_lsn = 1",
	    "UPDATE meta SET group_lsn = 0");
	assert_damaged("UPDATE meta SET group_uuid = x'01'",
	    "UPDATE meta SET group_uuid = zeroblob(16)");
	j = help_open_here();
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(1, 1), 0);
	help_close(j);
	assert_damaged("UPDATE meta SET group_lsn = 4",
	    "UPDATE meta SET group_lsn = 1");
	assert_damaged("UPDATE meta SET group_uuid = zeroblob(16)",
	    "UPDATE meta SET group_uuid = x'612067726f7570000000000000000000'");
	j = help_open_here();
}

/* ---- joining ---- */

static uint64_t now_ms(void)
{
	return (uint64_t)(SYS(&sys_kernel, now_wall) / 1000000);
}

/* The clock of this machine may be ahead, or behind. */
TEST(a_journal_joins_at_the_time_of_the_others, .times = 2)
{
	const uint64_t at = now_ms() + (_i == 0 ? 3600000 : -3600000);

	ck_assert_int_eq(journal_join(j, 70, at, NULL, NULL), 0);
	ck_assert_uint_eq(journal_joined_ms(j), at);
	help_reopen(j);
	ck_assert_uint_eq(journal_joined_ms(j), at);
}

/* Of earlier ids, only other nodes know the outcomes. */
TEST(a_journal_knows_when_it_has_joined)
{
	const uint64_t before = now_ms();
	uint64_t joined;

	ck_assert_uint_eq(journal_joined_ms(j), 0);
	ck_assert_int_eq(journal_join(j, 70, 0, NULL, NULL), 0);
	joined = journal_joined_ms(j);
	ck_assert_uint_ge(joined, before);
	ck_assert_uint_le(joined, now_ms());
	help_reopen(j);
	ck_assert_uint_eq(journal_joined_ms(j), joined);
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(1, 71), 0);
	ck_assert_int_eq(journal_leave(j), 0);
	ck_assert_int_eq(commit(2, 0), 0);
	help_close(j);
	assert_damaged("UPDATE joined SET time_ms = time_ms - 1",
	    "UPDATE joined SET time_ms = time_ms + 1");
	assert_damaged("ALTER TABLE joined RENAME TO gone",
	    "ALTER TABLE gone RENAME TO joined");
	j = help_open_here();
	ck_assert_uint_eq(journal_joined_ms(j), joined);
}

/* Refs of two repositories, as copies have them. */
static struct journal_given given[] = {
	{ .repo = { .uuid = "one", .path = (char *)"/srv/1" },
	    .ref = "refs/heads/x",
	    .value = { .lsn = 72, .exists = true, .oid.bytes = { 4 } } },
	{ .repo = { .uuid = "one", .path = (char *)"/srv/1" },
	    .ref = "refs/remotes/o/HEAD",
	    .value = { .lsn = 72, .target = (char *)"refs/heads/x" } },
	{ .repo = { .uuid = "two", .path = (char *)"/srv/2" },
	    .ref = "refs/heads/x",
	    .value = { .lsn = 72, .exists = true, .oid.bytes = { 5 } } },
};

/* *ARG: the values so far. Fails behind the second one if FAILS. */
static int next(struct journal_given *to, size_t *nr, bool fails)
{
	const size_t all = sizeof(given) / sizeof(*given);

	if (fails && *nr == 2)
		return -EINVAL;
	if (*nr == all)
		return 0;
	*to = given[(*nr)++];
	return 1;
}

static int next_given(void *nr, struct journal_given *to)
{
	return next(to, nr, false);
}

static int next_fails(void *nr, struct journal_given *to)
{
	return next(to, nr, true);
}

TEST(a_new_journal_begins_with_an_lsn)
{
	start_with(70);

	assert_group(70, none);
	/* One journal joins once. */
	ck_assert_int_eq(journal_join(j, 71, 0, NULL, NULL), -EEXIST);
	restart();
	assert_group(70, none);
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(1, 70), -EINVAL);
	ck_assert_int_eq(commit(1, 71), 0);
	help_reopen(j);
	assert_group(71, ours);
}

TEST(a_journal_with_rows_does_not_begin_with_an_lsn)
{
	ck_assert_int_eq(commit(1, 0), 0);
	ck_assert_int_eq(journal_join(j, 70, 0, NULL, NULL), -EEXIST);
	assert_group(0, none);
}

/* The values survive a power loss together with the position. */
TEST(a_journal_that_joins_has_the_values_of_the_copies)
{
	size_t nr = 0;

	ck_assert_int_eq(journal_join(j, 70, 0, next_given, &nr), 0);
	help_reopen(j);
	assert_group(70, none);
	assert_value(1, "refs/heads/x", 72, 4, NULL);
	assert_value(1, "refs/remotes/o/HEAD", 72, 0, "refs/heads/x");
	assert_value(2, "refs/heads/x", 72, 5, NULL);
	ck_assert_int_eq(help_ask("SELECT count(*) FROM repo"), 2);
	/* A row has a later value, also a value that the copy lacked. */
	journal_set_shared(j, ours);
	ck_assert_int_eq(give(71, "refs/heads/x", 6, NULL), 0);
	assert_value(1, "refs/heads/x", 71, 6, NULL);
}

TEST(a_value_that_cannot_be_read_leaves_nothing)
{
	size_t nr = 0;

	ck_assert_int_lt(journal_join(j, 70, 0, next_fails, &nr), 0);
	assert_group(0, none);
	ck_assert_int_eq(help_ask("SELECT count(*) FROM repo"), 0);
	nr = 0;
	ck_assert_int_eq(journal_join(j, 70, 0, next_given, &nr), 0);
	assert_group(70, none);
}

/* ---- leaving ---- */

static uint64_t left_at(void)
{
	uint8_t uuid[16];
	uint64_t lsn = 0;

	journal_shared_uuid(j, uuid);
	ck_assert(left_log_lsn(uuid, &lsn));
	return lsn;
}

TEST(a_journal_leaves_its_group_and_goes_on_in_a_new_one)
{
	uint8_t uuid[16];

	start_with(69);
	ck_assert(journal_shares_rows(j));
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(1, 70), 0);
	ck_assert_int_eq(journal_leave(j), 0);
	ck_assert(!journal_shares_rows(j));
	ck_assert_uint_eq(left_at(), 70);
	journal_shared_uuid(j, uuid);
	assert_group(70, uuid);
	/* The former group, and any other one. */
	ck_assert_int_eq(commit(2, 71), -EINVAL);
	journal_set_shared(j, others);
	ck_assert_int_eq(commit(2, 71), -EINVAL);
	ck_assert_int_eq(commit(2, 0), 0);
	help_reopen(j);
	assert_group(70, uuid);
	restart();
	ck_assert(!journal_shares_rows(j));
	ck_assert_int_eq(journal_leave(j), 0);
	assert_group(70, uuid);
	journal_set_shared(j, uuid);
	ck_assert(!journal_shares_rows(j));
	ck_assert_int_eq(commit(3, 71), 0);
	ck_assert(journal_shares_rows(j));
	assert_group(71, uuid);
	ck_assert_int_eq(journal_leave(j), 0);
	ck_assert_uint_eq(left_at(), 71);
}

/* The repositories can have refs. So a new group begins with a row that an
 * empty node lacks. */
TEST(a_journal_without_rows_of_a_group)
{
	ck_assert(!journal_shares_rows(j));
	ck_assert_int_eq(journal_leave(j), 0);
	ck_assert_uint_eq(left_at(), 1);
	ck_assert_uint_eq(journal_shared_lsn(j), 1);
	ck_assert(!journal_shares_rows(j));
}

/* It is an acknowledged update that is in no ref. */
TEST(a_row_that_waits_keeps_the_journal_in_its_group)
{
	start_with(69);
	journal_set_shared(j, ours);
	ck_assert_int_eq(commit(1, 70), 0);
	ck_assert_int_eq(put_off(71, 1, "one.git"), 0);
	ck_assert_int_eq(journal_leave(j), -EBUSY);
	ck_assert(journal_shares_rows(j));
	assert_group(71, ours);
	ck_assert_int_eq(commit(2, 71), 0);
	ck_assert_int_eq(journal_leave(j), 0);
	ck_assert_uint_eq(left_at(), 71);
}

TEST(an_lsn_that_is_too_high)
{
	start_with(LEFT_LOG_LSN_MAX + 1);
	ck_assert_int_eq(journal_leave(j), -ERANGE);
	assert_group(LEFT_LOG_LSN_MAX + 1, none);
}

TEST(the_text_of_an_origin)
{
	static const char *const wrong[] = { "", ":", "7", "7:", "x",
		"7:ffff07000000000000000000000000", /* short */
		"7:ffff0700000000000000000000000000a",
		"8:ffff0700000000000000000000000000", /* another LSN */
		"07:ffff0700000000000000000000000000",
		"7:FFFF0700000000000000000000000000",
		"0:ffff0000000000000000000000000000",
		"7:fffe0700000000000000000000000000" };
	static const char right[] = "7:ffff0700000000000000000000000000";
	char text[LEFT_LOG_TEXT_MAX];
	uint8_t uuid[16];
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_msg(!left_log_parse(wrong[i], uuid), "%s", wrong[i]);
	ck_assert(left_log_parse(right, uuid));
	ck_assert_str_eq(left_log_print(uuid, text), right);
	memset(uuid, 0xff, sizeof(uuid));
	left_log_make(LEFT_LOG_LSN_MAX, uuid);
	ck_assert_str_eq(left_log_print(uuid, text),
	    "281474976710655:ffffffffffffffffffffffffffffffff");
	ck_assert(left_log_parse(text, uuid));
}
