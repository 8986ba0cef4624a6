/*
 * Proves how refd restore uses history: the value of a ref at a moment, from
 * the changes around this moment and the present value; reports on changes by
 * git; refs that are left alone; the order of the changes; and the arguments
 * that are moments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/restore/point_in_time.h"
#include "client/restore/restore_plan.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table[0])))

/* Values are letters; "-" means no ref. */
static struct refd_oid value(const char *letter)
{
	struct refd_oid oid = { 0 };

	memset(oid.bytes, *letter == '-' ? 0 : *letter, REFD_SHA1_BYTES);
	return oid;
}

static char letter(const struct refd_oid *oid)
{
	return refd_oid_is_null(oid) ? '-' : (char)oid->bytes[0];
}

static struct refs_then then;
static struct refs_now now;
static struct text list;

static void setup(void)
{
	memset(&then, 0, sizeof(then));
	then.point.lsn = 10;
}

static void teardown(void)
{
	refs_then_done(&then);
	refs_now_done(&now);
}

static void add(uint64_t lsn, uint32_t nr, const char *name, const char *old,
    const char *new)
{
	struct refd_record record = { .lsn = lsn };
	struct refd_change c = { .record = &record,
		.nr = nr,
		.status = REFD_OK,
		.name = name,
		.has_old = true,
		.has_new = true,
		.old_oid = value(old),
		.new_oid = value(new) };

	refs_then_add(&then, &c);
}

static void is_now(const char *name, const char *at)
{
	struct refd_oid oid = value(at);
	char hex[REFD_OID_MAX_HEX + 1];

	text_addf(&list, "%s %s \n", refd_oid_hex(&oid, REFD_FORMAT_SHA1, hex),
	    name);
}

static const char *undone(bool undo_git)
{
	static char out[400];
	struct restore_plan plan;
	size_t i, len = 0;

	ck_assert(refs_now_parse(&now, &list));
	restore_plan_make(&plan, &then, &now, undo_git, NULL, 0);
	out[0] = '\0';
	for (i = 0; i < plan.nr; i++)
		len += (size_t)snprintf(out + len, sizeof(out) - len,
		    "%s%s %s %c%c%s%s", len ? ", " : "",
		    strrchr(plan.refs[i].name, '/') ?
			strrchr(plan.refs[i].name, '/') + 1 :
			plan.refs[i].name,
		    plan.refs[i].verdict == PLAN_RESTORE      ? "restore" :
			plan.refs[i].verdict == PLAN_LEFT_GIT ? "git" :
			plan.refs[i].verdict == PLAN_LEFT_SYMBOLIC ?
								"symbolic" :
								"worktree",
		    letter(&plan.refs[i].now), letter(&plan.refs[i].then),
		    plan.refs[i].git_since ? " since" : "",
		    plan.refs[i].git_around ? " around" : "");
	restore_plan_done(&plan);
	return out;
}

/* ---- one ref ---- */

#define X "refs/heads/x"

/* Changes are "<lsn> <old> <new>"; PRESENT is the current value. */
static const struct {
	const char *changes[4];
	const char *present, *wanted;
} cases[] = {
	/* forced once, twice; before and since */
	{ { "11ab" }, "b", "x restore ba" },
	{ { "11ab", "12bc" }, "c", "x restore ca" },
	{ { "09-a", "11ab" }, "b", "x restore ba" },
	{ { "10-a", "11ab" }, "b", "x restore ba" },
	/* made since, deleted since, both, and the other way round */
	{ { "11-a" }, "a", "x restore a-" },
	{ { "09-a", "11a-" }, "-", "x restore -a" },
	{ { "11-a", "12a-" }, "-", "" },
	{ { "11a-", "12-b" }, "b", "x restore ba" },
	/* unchanged: nothing since, or undone already */
	{ { "09-a", "10ab" }, "b", "" },
	{ { "11ab", "12ba" }, "a", "" },
	/* git: after the last record, around the moment, both, by accident to
	 * the right value */
	{ { "11ab" }, "c", "x restore ca since" },
	{ { "11ab" }, "-", "x restore -a since" },
	{ { "09-a", "11bc" }, "c", "x restore cb around" },
	{ { "09-a", "11bc" }, "d", "x restore db since around" },
	{ { "09-a", "11-c" }, "c", "x restore c- around" },
	{ { "11ab" }, "a", "" },
	/* git, between two records since: does not matter */
	{ { "11ab", "12cd" }, "d", "x restore da" },
	/* only git: the time is unknown */
	{ { "09-a" }, "b", "x git ba since" },
	{ { "09-a" }, "-", "x git -a since" },
	{ { "09a-" }, "b", "x git b- since" },
	{ { "09a-" }, "-", "" },
};

static void add_case(int i)
{
	const char *const *c = cases[i].changes;

	for (; *c; c++)
		add(strtoul(*c, NULL, 10), 1, X, *c + 2, *c + 3);
	if (*cases[i].present != '-')
		is_now(X, cases[i].present);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(test_value, .times = COUNT(cases))
{
	add_case(_i);
	ck_assert_str_eq(undone(false), cases[_i].wanted);
}

/* Undo ignores changes that only git made. */
TEST(test_undo_git, .times = COUNT(cases))
{
	char wanted[40];

	if (strstr(cases[_i].wanted, " git "))
		snprintf(wanted, sizeof(wanted), "x restore%s",
		    cases[_i].wanted + 5);
	else
		snprintf(wanted, sizeof(wanted), "%s", cases[_i].wanted);
	add_case(_i);
	ck_assert_str_eq(undone(true), wanted);
}

/* ---- which changes count ---- */

TEST(test_position_in_record)
{
	then.point.nr = 2;
	add(10, 2, "refs/heads/x", "a", "b");
	add(10, 3, "refs/heads/y", "a", "b");
	is_now("refs/heads/x", "b");
	is_now("refs/heads/y", "b");
	ck_assert_str_eq(undone(false), "y restore ba");
}

TEST(test_rejected)
{
	struct refd_record record = { .lsn = 12 };
	struct refd_change c = { .record = &record,
		.status = REFD_STALE,
		.name = X,
		.has_old = true,
		.old_oid = value("z") };

	refs_then_add(&then, &c);
	add(13, 1, X, "a", "b");
	is_now(X, "b");
	ck_assert_str_eq(undone(false), "x restore ba");
}

/* An earlier value that was symbolic is not recorded. */
TEST(test_symbolic)
{
	struct refd_record record = { .lsn = 12 };
	struct refd_change c = { .record = &record,
		.status = REFD_OK,
		.name = "refs/heads/became",
		.has_old = true,
		.has_new = true,
		.old_oid = value("a"),
		.new_oid = value("b"),
		.target = X };

	refs_then_add(&then, &c);
	add(12, 2, "refs/heads/is", "a", "b");
	add(12, 3, "refs/remotes/o/HEAD", "a", "-");
	text_addf(&list, "%s refs/heads/is refs/heads/x\n",
	    "6262626262626262626262626262626262626262");
	ck_assert_str_eq(undone(true),
	    "became symbolic -a, is symbolic ba, "
	    "HEAD symbolic -a");
}

TEST(test_worktrees)
{
	add(9, 1, "refs/bisect/good", "-", "a");
	add(12, 1, "HEAD", "a", "b");
	add(12, 2, "worktrees/w/refs/bisect/w", "a", "-");
	add(12, 3, "refs/bisect/bad", "a", "-");
	add(12, 4, "refs/worktree/w", "a", "a");
	ck_assert_str_eq(undone(true),
	    "HEAD worktree -a, bad worktree -a, w worktree -a");
}

/* Counted if the selection covers them. */
TEST(test_unknown)
{
	static const char *const patterns[] = { "refs/tags/" };
	struct restore_plan plan;

	add(9, 1, X, "-", "a");
	is_now(X, "a");
	is_now("refs/heads/y", "a");
	is_now("refs/tags/z", "a");
	is_now("refs/bisect/z", "a");
	ck_assert(refs_now_parse(&now, &list));
	restore_plan_make(&plan, &then, &now, false, NULL, 0);
	ck_assert_uint_eq(plan.nr_unknown, 2);
	restore_plan_done(&plan);
	restore_plan_make(&plan, &then, &now, false, patterns, 1);
	ck_assert_uint_eq(plan.nr_unknown, 1);
	restore_plan_done(&plan);
}

/* Deletions come first, with the current values as old values. */
TEST(test_changes)
{
	struct changes changes = { 0 };
	const struct refd_update *u;
	struct restore_plan plan;

	add(11, 1, "refs/heads/a", "a", "-");
	add(11, 2, "refs/heads/a/x", "-", "b");
	add(11, 3, "refs/heads/m", "a", "b");
	is_now("refs/heads/a/x", "b");
	is_now("refs/heads/m", "c");
	ck_assert(refs_now_parse(&now, &list));
	restore_plan_make(&plan, &then, &now, false, NULL, 0);
	ck_assert_uint_eq(plan.nr_made, 1);
	ck_assert_uint_eq(plan.nr_moved, 1);
	ck_assert_uint_eq(plan.nr_deleted, 1);
	restore_plan_changes(&plan, &changes);
	u = changes.updates;
	ck_assert_uint_eq(changes.nr, 3);
	ck_assert_int_eq(u[0].action, REFD_DELETE);
	ck_assert_str_eq(u[0].name, "refs/heads/a/x");
	ck_assert(u[0].has_old && letter(&u[0].old_oid) == 'b');
	ck_assert_int_eq(u[1].action, REFD_CREATE);
	ck_assert_str_eq(u[1].name, "refs/heads/a");
	ck_assert_int_eq(letter(&u[1].new_oid), 'a');
	ck_assert_int_eq(u[2].action, REFD_UPDATE);
	ck_assert(u[2].has_old && letter(&u[2].old_oid) == 'c');
	ck_assert_int_eq(letter(&u[2].new_oid), 'a');
	changes_done(&changes);
	restore_plan_done(&plan);
}

TEST(test_present)
{
	text_adds(&list, "no line of git's\n");
	ck_assert(!refs_now_parse(&now, &list));
}

/* ---- moments ---- */

static const struct {
	const char *text;
	uint64_t ms; /* 0: refused */
} times[] = {
	{ "@1785578400", 1785578400000 },
	{ "@1785578400.5", 1785578400500 },
	{ "2024-08-01T12:00:00Z", 1722513600000 },
	{ "2024-08-01 12:00:00 +0200", 1722506400000 },
	{ "2024-08-01T12:00:00.123+0200", 1722506400123 },
	{ "2024-08-01T12:00:00.1239+02:00", 1722506400123 },
	/* in the time zone of Berlin */
	{ "2024-08-01T12:00:00", 1722506400000 },
	{ "2024-12-01T12:00:00", 1733050800000 },
	{ "2024-10-27T01:59:59", 1729987199000 },
	{ "2024-10-27T02:30:00", 0 },
	{ "2024-10-27T02:30:00+0100", 1729992600000 },
	{ "2024-10-27T03:00:00", 1729994400000 },
	{ "2024-02-30T12:00:00", 0 },
	{ "2024-08-01", 1722463200000 },
	{ "2024-08-01 12:00", 1722506400000 },
	{ "2024-08-01T12:00", 1722506400000 },
	{ "2024-13-01", 0 },
	{ "2024-02-30", 0 },
	{ "2024-08", 0 },
	{ "2024-08-01 12:00 x", 0 },
	/* git takes each of them for some time. */
	{ "last tuesdy", 0 },
	{ "10 minuts ago", 0 },
	{ "10 minutes agoo", 0 },
	{ "10 minutes ago x", 0 },
	{ "minutes ago", 0 },
	{ "yesterdays", 0 },
	{ "@", 0 },
	{ "12:61", 0 },
	{ "ago", 0 },
	{ "", 0 },
	{ "-1", 0 },
	{ "2999-08-01T12:00:00Z", 0 },
};

TEST(test_times, .times = COUNT(times))
{
	struct text why = { 0 };
	struct point_in_time m;
	bool ok;

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	ok = point_in_time_parse(times[_i].text, &m, &why);
	if (times[_i].ms)
		ck_assert(ok && m.ms == times[_i].ms);
	else
		ck_assert(!ok && why.len);
	text_done(&why);
}

TEST(test_positions)
{
	struct text why = { 0 };
	struct point_in_time m;
	char number[32];

	ck_assert(point_in_time_parse("4711", &m, &why));
	ck_assert(m.ms == 0 && m.position.at.lsn == 4711);
	ck_assert_str_eq(point_in_time_number(&m, number), "4711");
	ck_assert(point_in_time_parse("000102030405060708090a0b0c0d0e0f:4711.2",
	    &m, &why));
	ck_assert(m.position.has_journal && m.position.journal[15] == 15);
	ck_assert_str_eq(point_in_time_number(&m, number), "4711.2");
	ck_assert(!point_in_time_parse("00:4711", &m, &why));
	ck_assert(!point_in_time_parse("4711.", &m, &why));
	text_done(&why);
}

/* The words of git, in seconds. */
TEST(test_ago)
{
	static const struct {
		const char *text;
		time_t secs;
	} cases_ago[] = { { "10 minutes ago", 600 }, { "1 second ago", 1 },
		{ "2.hours.ago", 7200 }, { "1 day 2 hours ago", 93600 },
		{ "3 weeks ago", 1814400 }, { "yesterday", 86400 },
		{ "now", 0 } };
	time_t before = time(NULL);
	struct text why = { 0 };
	struct point_in_time m;
	size_t i;

	for (i = 0; i < sizeof(cases_ago) / sizeof(cases_ago[0]); i++) {
		ck_assert(point_in_time_parse(cases_ago[i].text, &m, &why));
		ck_assert_uint_ge(m.ms,
		    (uint64_t)(before - cases_ago[i].secs) * 1000);
		ck_assert_uint_le(m.ms,
		    (uint64_t)(time(NULL) + 1 - cases_ago[i].secs) * 1000);
	}
}

static time_t second(void)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	return at.tv_sec;
}

/* Months differ in length: git decides, which needs a moment without a change
 * of the second. time() can be behind by some milliseconds, so it begins. */
TEST(test_months_ago, .times = 5)
{
	static const char *const spans[] = { "1 month ago", "5 months ago",
		"11 months ago", "1 year ago", "30 months ago" };
	const char *span = spans[_i];
	struct text why = { 0 };
	struct point_in_time m;
	time_t before;
	char *git = NULL;

	do {
		free(git);
		before = time(NULL);
		git = tmp_output("git -c refd.t='%s' config "
				 "--type=expiry-date refd.t",
		    span);
		ck_assert(point_in_time_parse(span, &m, &why));
	} while (second() != before);
	ck_assert_uint_eq(m.ms, strtoull(git, NULL, 10) * 1000);
	free(git);
}

/* time() can be behind by some milliseconds. A script that asks for the second
 * that has just begun must get it. */
TEST(test_second_has_begun)
{
	const time_t before = second();
	struct text why = { 0 };
	struct point_in_time m;
	char text[32];

	while (second() == before)
		;
	snprintf(text, sizeof(text), "@%lld", (long long)before + 1);
	ck_assert_msg(point_in_time_parse(text, &m, &why), "%s", why.data);
	text_done(&why);
}
