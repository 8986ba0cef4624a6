/*
 * Proves the output of the administrator's commands. Rows in an answer of pairs
 * are told apart. Times, names and rates have the right form, and no name moves
 * a cursor. A frame of refd top fits the screen, whatever its size, and shows
 * the busiest first. The slow log keeps the newest entries, with parts that add
 * up to the whole.
 */
#include <stdio.h>
#include <string.h>

#include "client/admin/frame.h"
#include "client/admin/show.h"
#include "client/request/rows.h"
#include "daemon/scheduler/slow.h"
#include "tests/lib/suite.h"

static struct refd_pair pairs[] = { { "state", "serving" },
	{ "uptime_s", "3725" }, { "connections", "7" }, { "span_ms", "5000" },
	{ "batches", "50" }, { "transactions", "123" }, { "refs", "1230" },
	{ "flush_us_p50", "850" }, { "flush_us_p99", "1250" },
	{ "flush_us_max", "3400000" }, { "repo.name", "/srv/a\033[2J.git" },
	{ "repo.transactions", "100" }, { "repo.refs", "1000" },
	{ "repo.span_ms", "5000" }, { "repo.name", "/srv/b.git" },
	{ "repo.transactions", "23" }, { "repo.refs", "230" },
	{ "repo.span_ms", "5000" }, { "client.name", "4294967294 alice" },
	{ "client.transactions", "123" }, { "client.refs", "1230" },
	{ "client.span_ms", "5000" }, { "flush_hangs_s", "0" },
	{ "flush_hangs_on", "/srv\033[2J" } };
static const struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
	.pairs = pairs,
	.nr_pairs = sizeof(pairs) / sizeof(pairs[0]) };

/* The tests may run on a terminal. */
static void without_colour(void)
{
	colour_take(NULL, "never");
}

CASE(.setup = without_colour);

TEST(test_rows)
{
	struct row row = { 0 };

	ck_assert_uint_eq(rows_number(&ans, "batches"), 50);
	ck_assert_str_eq(rows_value(&ans, "nothing"), "");
	ck_assert(row_next(&ans, "repo", &row));
	ck_assert_uint_eq(row_number(&row, "refs"), 1000);
	ck_assert(row_next(&ans, "repo", &row));
	ck_assert_str_eq(row_value(&row, "name"), "/srv/b.git");
	ck_assert_uint_eq(row_number(&row, "transactions"), 23);
	ck_assert_str_eq(row_value(&row, "sid"), "");
	ck_assert(!row_next(&ans, "repo", &row));
	memset(&row, 0, sizeof(row));
	ck_assert(!row_next(&ans, "rep", &row));
}

static void looks(void (*show)(struct text *t, uint64_t value), uint64_t value,
    const char *wanted)
{
	struct text t = { 0 };

	show(&t, value);
	ck_assert_str_eq(t.data, wanted);
	text_done(&t);
}

TEST(test_show)
{
	struct text t = { 0 };

	looks(show_time, 999, "999 us");
	looks(show_time, 1250, "1.2 ms");
	looks(show_time, 3400000, "3.4 s");
	looks(show_span, 59, "59 s");
	looks(show_span, 61, "1:01");
	looks(show_span, 3725, "1:02:05");
	looks(show_span, 90061, "1d 01:01:01");
	looks(show_age, 119, "119 s");
	looks(show_age, 120, "2 min");
	looks(show_age, 7200, "2 h");
	looks(show_age, 86400, "1 day");
	looks(show_age, 3 * 86400 + 5, "3 days");
	looks(show_moment, 0, "1970-01-01T00:00:00Z");
	text_add_visible(&t, "a\033[31m\177\302\233b\303\274");
	ck_assert_str_eq(t.data, "a?[31m??b\303\274");
	text_clear(&t);
	show_end(&t, "/srv/git/\303\274\303\274.git", 9);
	ck_assert_str_eq(t.data, "...\303\274\303\274.git");
	text_clear(&t);
	show_end(&t, "\303\274", 3);
	ck_assert_str_eq(t.data, "\303\274  ");
	text_clear(&t);
	show_rate(&t, 123, 5000);
	show_rate(&t, 1, 0);
	ck_assert_str_eq(t.data, "24.60.0");
	text_clear(&t);
	show_count(&t, 1, "ref ", "refs ");
	show_count(&t, 1234056, "ref ", "refs ");
	show_count(&t, 0, "ref", "refs");
	ck_assert_str_eq(t.data, "1 ref 1,234,056 refs 0 refs");
	text_done(&t);
}

TEST(test_show_lines)
{
	struct text t = { 0 };

	show_lines(&t, COLOUR_PLAIN, "one two three", 2, 9);
	ck_assert_str_eq(t.data, "  one two\n  three\n");
	text_clear(&t);
	show_lines(&t, COLOUR_PLAIN, "\303\274\303\274\303\274 \303\274", 0, 5);
	ck_assert_str_eq(t.data, "\303\274\303\274\303\274 \303\274\n");
	text_clear(&t);
	show_lines(&t, COLOUR_PLAIN, "a /a/long/path b\033[2J\n", 4, 9);
	ck_assert_str_eq(t.data, "    a\n    /a/long/path\n    b?[2J \n");
	text_clear(&t);
	show_lines(&t, COLOUR_PLAIN, "one two three", 4, 0);
	ck_assert_str_eq(t.data, "    one two three\n");
	text_clear(&t);
	ck_assert_ptr_null(colour_take(NULL, "always"));
	show_lines(&t, COLOUR_OK, "one two", 1, 4);
	ck_assert_str_eq(t.data, " \033[32mone\033[m\n \033[32mtwo\033[m\n");
	ck_assert_ptr_null(colour_take(NULL, "never"));
	text_done(&t);
}

TEST(test_frame)
{
	size_t lines, columns, nr, len;
	struct text t = { 0 };
	const char *s;

	for (lines = 1; lines < 40; lines++) {
		columns = 10 + (lines * 7) % 100;
		text_clear(&t);
		frame_render(&ans, lines < 6 ? 6 : lines, columns, &t);
		for (s = t.data, nr = 0; *s; s += len + 1, nr++) {
			len = strcspn(s, "\n");
			ck_assert_uint_le(len, columns);
		}
		ck_assert_uint_le(nr, lines < 6 ? 6 : lines);
		ck_assert_ptr_null(strchr(t.data, '\033'));
	}
	text_clear(&t);
	frame_render(&ans, 0, 80, &t);
	ck_assert_ptr_nonnull(strstr(t.data,
	    "refd serving, up 1:02:05, 7 connections\n"
	    "last 5 s: batches/s 10.0  transactions/s 24.6  refs/s 246.0\n"));
	ck_assert_ptr_nonnull(
	    strstr(t.data, "p50 850 us p99 1.2 ms max 3.4 s\n"));
	s = strstr(t.data, "/srv/a?[2J.git");
	ck_assert_ptr_nonnull(s);
	ck_assert_ptr_nonnull(strstr(s, "/srv/b.git"));
	ck_assert_ptr_nonnull(strstr(t.data, "4294967294 alice"));
	/* Numbers stand beside the names, and every table has a row. */
	ck_assert_ptr_nonnull(
	    strstr(t.data, "\n4294967294 alice      24.6     246.0\n"));
	text_clear(&t);
	frame_render(&ans, 12, 80, &t);
	ck_assert_ptr_nonnull(strstr(t.data, "4294967294 alice"));
	text_done(&t);
}

TEST(test_frame_of_a_disk_that_hangs)
{
	struct refd_pair *hangs = &pairs[ans.nr_pairs - 2];
	struct text t = { 0 };

	hangs->value = "20";
	frame_render(&ans, 0, 80, &t);
	hangs->value = "0";
	ck_assert_ptr_nonnull(strstr(t.data,
	    "refd serving, A FLUSH HANGS for 20 s on /srv?[2J, up 1:02:05,"));
	text_clear(&t);
	colour_take(NULL, "always");
	hangs->value = "20";
	frame_render(&ans, 0, 20, &t);
	hangs->value = "0";
	ck_assert_ptr_nonnull(
	    strstr(t.data, "\033[1;31mrefd serving, A FLUS\033[m\n"));
	text_clear(&t);
	frame_render(&ans, 0, 20, &t);
	colour_take(NULL, "never");
	ck_assert_ptr_nonnull(
	    strstr(t.data, "\033[32mrefd serving, up 1:0\033[m\n"));
	ck_assert_ptr_nonnull(strstr(t.data, "\n\033[1mlast 5 s: batches/s "));
	ck_assert_ptr_nonnull(strstr(t.data, "\033[1mREPOSITORY"));
	text_done(&t);
}

#define MS 1000000LL

TEST(test_slow)
{
	struct refd_update ask = { .name = "refs/heads/x" };
	struct txn_update update = { .ask = &ask };
	struct txn txn = { .updates = &update,
		.nr_updates = 1,
		.times = { .arrived_ns = 1000 * MS,
		    .admitted_ns = 1100 * MS,
		    .barrier_ns = 60 * MS,
		    .lock_ns = 10 * MS,
		    .flush_ns = 20 * MS,
		    .publish_ns = 30 * MS,
		    .done_ns = 1300 * MS } };
	struct slow slow = { .limit_ns = 301 * MS };
	const struct slow_one *one;
	int i;

	slow_look(&slow, &txn, "/r", REFD_COMMITTED, 1301 * MS, 5);
	ck_assert_uint_eq(slow.nr, 0);
	slow.limit_ns = 300 * MS;
	for (i = 0; i < SLOW_KEPT + 2; i++)
		slow_look(&slow, &txn, "/r", REFD_COMMITTED, 1301 * MS, i);
	ck_assert_ptr_null(slow_get(&slow, SLOW_KEPT + 2));
	slow_sent(&slow, 1305 * MS);
	ck_assert_ptr_null(slow_get(&slow, 0));
	ck_assert_ptr_null(slow_get(&slow, 2));
	ck_assert_ptr_nonnull(slow_get(&slow, 3));
	one = slow_get(&slow, SLOW_KEPT + 2);
	ck_assert_ptr_nonnull(one);
	ck_assert_int_eq(one->wall_ms, SLOW_KEPT + 1);
	ck_assert_int_eq(one->admit_ns, 40 * MS);
	ck_assert_int_eq(one->queue_ns, 140 * MS);
	ck_assert_int_eq(one->reply_ns, 5 * MS);
	ck_assert_int_eq(one->total_ns, 305 * MS);
	ck_assert_int_eq(one->admit_ns + one->barrier_ns + one->queue_ns +
		one->lock_ns + one->flush_ns + one->publish_ns + one->reply_ns,
	    one->total_ns);
	ck_assert_str_eq(one->ref, "refs/heads/x");
	slow_done(&slow);
}
