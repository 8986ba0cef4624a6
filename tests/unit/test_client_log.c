/*
 * Proves what refd log prints for people: the account always comes before a
 * name that the client gave; times are in git's words; no line of a table is
 * wider than the terminal, and a long name keeps its end; in a pipe a change is
 * a line of seven fields, with full values; no control character is printed;
 * the command below a change brings the old value back.
 */
#include <stdlib.h>
#include <string.h>

#include "client/log/lines.h"
#include "client/log/when.h"
#include "proto/lib/time_text.h"
#include "tests/lib/suite.h"

#define NOBODY 3999999999u
#define SECOND UINT64_C(1000)
#define DAY    (86400 * SECOND)
#define NOW    (20000 * DAY)

static struct refd_record record;
static struct refd_change change;
static struct lines lines;
static struct text out;

static struct refd_oid value(int byte)
{
	struct refd_oid oid = { 0 };

	memset(oid.bytes, byte, REFD_SHA1_BYTES);
	return oid;
}

static void setup(void)
{
	setenv("TZ", "UTC", 1);
	record = (struct refd_record){ .lsn = 4711,
		.time_ms = NOW - 180 * SECOND,
		.repo = "/srv/git/a.git",
		.message = "push" };
	change = (struct refd_change){ .record = &record,
		.nr = 1,
		.name = "refs/heads/x",
		.has_old = true,
		.has_new = true,
		.old_oid = value(0x12),
		.new_oid = value(0x34) };
	lines = (struct lines){ .has_repo = true, .columns.width = 80 };
}

static void teardown(void)
{
	text_done(&out);
}

static void be(const char *name, const char *is)
{
	record.identities[record.nr_identities].name = name;
	record.identities[record.nr_identities++].value = is;
}

static const char *who(void)
{
	text_clear(&out);
	lines_add_who(&out, &record);
	return out.data;
}

/* The changes LIST, one record each. */
static const char *print(const struct refd_change *list, size_t nr)
{
	struct refd_answer ans = { .changes = (struct refd_change *)list,
		.nr_changes = nr };

	text_clear(&out);
	lines_add(&lines, &ans, NOW, &out);
	return out.data;
}

/* ---- who ---- */

CASE(.setup = setup, .teardown = teardown);

TEST(an_account)
{
	ck_assert_str_eq(who(), "root");
	record.uid = NOBODY;
	ck_assert_str_eq(who(), "uid=3999999999");
	record.uid = 0;
	ck_assert_str_eq(who(), "root");
}

TEST(the_address_of_a_shared_account)
{
	be("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.9 22");
	ck_assert_str_eq(who(), "root from 192.0.2.7");
}

TEST(a_person_follows_the_account)
{
	be("GL_ID", "key-7");
	ck_assert_str_eq(who(), "root (key-7)");
	be("GL_USER", "alice");
	be("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.9 22");
	ck_assert_str_eq(who(), "root (alice)");
	ck_assert_str_eq(refd_identity_person(record.identities,
			     record.nr_identities),
	    "alice");
	record.identities[1].value = "root";
	ck_assert_str_eq(who(), "root");
}

TEST(a_person_of_each_server, .times = 5)
{
	static const char *const names[] = { "GITEA_PUSHER_NAME",
		"GOGS_AUTH_USER_NAME", "REMOTE_USER", "SOFT_SERVE_USERNAME",
		"SSH_USER_AUTH" };

	be(names[_i], "carol");
	ck_assert_str_eq(who(), "root (carol)");
}

TEST(a_forged_name)
{
	record.uid = NOBODY;
	be("GL_USER", "root (alice)\033[A\tx");
	ck_assert_str_eq(who(), "uid=3999999999 (root (alice)?[A x)");
}

/* Anybody can set the committer. */
TEST(the_committer_is_nobody)
{
	record.committer = "Ada <ada@example.com> 0 +0000";
	ck_assert_str_eq(who(), "root");
}

/* ---- times ---- */

static const struct {
	uint64_t age;
	const char *text;
} ages[] = { { 0, "0 seconds ago" }, { 1, "1 second ago" },
	{ 89, "89 seconds ago" }, { 90, "2 minutes ago" },
	{ 89 * 60 + 29, "89 minutes ago" }, { 89 * 60 + 30, "2 hours ago" },
	{ 35 * 3600, "35 hours ago" }, { 36 * 3600, "2 days ago" },
	{ 13 * 86400, "13 days ago" }, { 14 * 86400, "2 weeks ago" },
	{ 69 * 86400, "10 weeks ago" }, { 70 * 86400, "2 months ago" },
	{ 364 * 86400, "12 months ago" }, { 365 * 86400, "1 year ago" },
	{ 400 * 86400, "1 year, 1 month ago" },
	{ 800 * 86400, "2 years, 2 months ago" },
	{ 4000 * UINT64_C(86400), "11 years ago" } };

TEST(relative_times, .times = sizeof(ages) / sizeof(ages[0]))
{
	char buf[64];

	ck_assert_str_eq(when_relative(NOW - ages[_i].age * SECOND, NOW, buf),
	    ages[_i].text);
}

TEST(the_future_and_utc)
{
	char buf[64];

	ck_assert_str_eq(when_relative(NOW + SECOND, NOW, buf),
	    "in the future");
	ck_assert_str_eq(time_text_utc(UINT64_C(1785585600042), buf),
	    "2026-08-01T12:00:00.042Z");
}

/* ---- a pipe ---- */

#define OLD "1212121212121212121212121212121212121212"
#define NEW "3434343434343434343434343434343434343434"
#define AT                                                                     \
	"2024-10-03T23:57:00.000Z\t4711.1\troot\t/srv/git/a.git\trefs/heads/x\t"

TEST(outcomes, .times = 2)
{
	lines.has_repo = _i; /* only for tables */
	ck_assert_str_eq(print(&change, 1),
	    AT "updated " OLD ".." NEW "\tpush\n");
	change.new_oid = value(0);
	ck_assert_str_eq(print(&change, 1), AT "deleted " OLD "\tpush\n");
	change.new_oid = change.old_oid;
	ck_assert_str_eq(print(&change, 1), AT "unchanged " OLD "\tpush\n");
	change.old_oid = value(0);
	ck_assert_str_eq(print(&change, 1), AT "created " OLD "\tpush\n");
	change.old_oid = value(0x12);
	change.has_new = false;
	ck_assert_str_eq(print(&change, 1), AT "updated " OLD "..?\tpush\n");
	change.target = "refs/heads/y";
	record.message = NULL;
	ck_assert_str_eq(print(&change, 1), AT "symbolic: refs/heads/y\t\n");
}

TEST(failures)
{
	change.status = REFD_STALE;
	ck_assert_str_eq(print(&change, 1),
	    AT "rejected\tis at a different value\n");
	change.text = "be\tquick";
	ck_assert_str_eq(print(&change, 1), AT "rejected\tbe quick\n");
	record.voids = 4700;
	ck_assert_str_eq(print(&change, 1), AT "took back 4700\tbe quick\n");
}

TEST(a_line_stays_a_line)
{
	const char *line, *s;
	int tabs = 0;

	be("GL_USER", "a\nb\tc");
	record.repo = "/srv/\xc2\x9b.git";
	change.name = "refs/heads/\xff\033[2J";
	record.message = "one\ntwo\tthree";
	line = print(&change, 1);
	for (s = line; *s; s++)
		tabs += *s == '\t';
	ck_assert_int_eq(tabs, LINES_FIELDS - 1);
	ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
	ck_assert_ptr_null(strpbrk(line, "\033\xff\x9b"));
	ck_assert_ptr_nonnull(strstr(line, "\trefs/heads/??[2J\t"));
}

/* ---- a table ---- */

static size_t longest_line(const char *s)
{
	size_t longest = 0, len;

	for (; *s; s += len + (s[len] == '\n')) {
		len = strcspn(s, "\n");
		longest = len > longest ? len : longest;
	}
	return longest;
}

TEST(a_table)
{
	lines.is_table = true;
	lines.is_relative = true;
	ck_assert_str_eq(print(&change, 1),
	    "time          record who  repository     ref          change\n"
	    "3 minutes ago   4711 root /srv/git/a.git refs/heads/x "
	    "1212121..3434343: push\n");
	/* The heading comes once. */
	change.new_oid = value(0);
	record.message = NULL;
	ck_assert_str_eq(print(&change, 1),
	    "3 minutes ago   4711 root /srv/git/a.git refs/heads/x "
	    "deleted 1212121\n");
}

TEST(one_repository_is_not_repeated)
{
	lines.is_table = true;
	lines.has_repo = false;
	ck_assert_str_eq(print(&change, 1),
	    "time                     record who  ref          change\n"
	    "2024-10-03T23:57:00.000Z   4711 root refs/heads/x "
	    "1212121..3434343: push\n");
}

TEST(nothing_is_no_table)
{
	lines.is_table = true;
	ck_assert_ptr_null(print(NULL, 0));
}

TEST(long_names_are_cut)
{
	struct refd_change list[2];
	const char *table;

	lines.is_table = true;
	lines.is_relative = true;
	list[0] = list[1] = change;
	be("GL_USER", "a-user-with-a-very-long-name");
	record.repo = "/srv/git/department/of/long/names/project.git";
	record.message = "a message that is longer than any terminal is wide";
	list[1].name = "refs/heads/feature/of/a/very/long/name/\xc3\xa9nd";
	table = print(list, 2);
	ck_assert_uint_le(longest_line(table), 80 + 1); /* bytes */
	ck_assert_ptr_nonnull(strstr(table, "...oject.git "));
	ck_assert_ptr_nonnull(strstr(table, " ..."));
	ck_assert_ptr_nonnull(strstr(table, "name/\xc3\xa9nd "));
	ck_assert_ptr_nonnull(strstr(table, " root (a-"));
	ck_assert_ptr_nonnull(strstr(table, " 1212121..3434343..."));
	/* The rows of the next answer have the same columns. */
	ck_assert_uint_eq(longest_line(print(&change, 1)), 80);
}

TEST(a_wide_terminal_cuts_nothing)
{
	lines.is_table = true;
	lines.columns.width = 300;
	record.message = "a message that is longer than any terminal is wide";
	ck_assert_ptr_nonnull(strstr(print(&change, 1), "is wide\n"));
}

TEST(the_width_of_the_terminal)
{
	setenv("COLUMNS", "132", 1);
	ck_assert_uint_eq(columns_of_terminal(), 132);
	setenv("COLUMNS", "20", 1);
	ck_assert_uint_eq(columns_of_terminal(), 80);
}

/* ---- -v ---- */

static const char *undo(void)
{
	const char *line;

	lines.is_verbose = true;
	line = strstr(print(&change, 1), "    undo: ");
	return line ? line + 10 : "";
}

TEST(how_to_undo)
{
	ck_assert_str_eq(undo(),
	    "refd restore --repo /srv/git/a.git "
	    "--ref refs/heads/x --at 4710\n");
	change.new_oid = value(0);
	record.repo = "/srv/it's a.git";
	change.name = "refs/heads/$(x)";
	ck_assert_str_eq(undo(),
	    "refd restore --repo '/srv/it'\\''s a.git' "
	    "--ref 'refs/heads/$(x)' --at 4710\n");
}

TEST(nothing_to_undo)
{
	change.name = "HEAD";
	ck_assert_str_eq(undo(), "");
	change.name = "refs/heads/\xff";
	ck_assert_str_eq(undo(), "");
	change.name = "refs/heads/x";
	change.status = REFD_STALE;
	ck_assert_str_eq(undo(), "");
	change.status = REFD_OK;
	change.new_oid = change.old_oid;
	ck_assert_str_eq(undo(), "");
	change.old_oid = value(0);
	ck_assert_str_eq(undo(), "");
}

TEST(all_facts, .times = 2)
{
	record.committer = "Ada <ada@\033> 0 +0000";
	record.pid = 42;
	be("GL_USER", "al\tice");
	lines.is_verbose = true;
	lines.is_table = _i;
	ck_assert_str_eq(strstr(print(&change, 1), "\n    "),
	    "\n    record 4711.1, transaction 00000000000000000000000000000000"
	    "\n    repository: /srv/git/a.git\n    ref: refs/heads/x"
	    "\n    old: " OLD "\n    new: " NEW "\n    message: push"
	    "\n    client: uid 0, pid 42\n    GL_USER: al ice"
	    "\n    committer, not verified: Ada <ada@?> 0 +0000"
	    "\n    undo: refd restore --repo /srv/git/a.git "
	    "--ref refs/heads/x --at 4710\n");
	change.status = REFD_STALE;
	ck_assert_ptr_nonnull(strstr(print(&change, 1),
	    "\n    reason: is at a different value\n"));
}
