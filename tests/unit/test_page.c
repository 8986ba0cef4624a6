/*
 * Proves the page of refd status --html. It is a whole document whose tags are
 * closed in their order; no name becomes markup or a control character; users
 * are counted, and the busiest comes first; bars stand where their times are.
 * A daemon that is away, and an answer that is refused, leave their reasons.
 * All answers of a slow daemon have ten seconds together. A history that is
 * still being read is not shown as empty.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "client/admin/page.h"
#include "client/request/question.h"
#include "proto/lib/clock.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define NOBODY  3999999999u
#define EVIL    "'\"><script>alert(1)</script>&\033[2J\342\200\256\377"
#define LATE_MS 6000
#define PAIRS(list)                                                            \
	((struct refd_answer){ .kind = REFD_ANSWER_PAIRS,                      \
	    .pairs = (list),                                                   \
	    .nr_pairs = sizeof(list) / sizeof((list)[0]) })

static struct refd_pair status[] = { { "state", "serving" },
	{ "uptime_s", "5" }, { "durability", "journal" },
	{ "durability_weakest", "journal" }, { "root.path", "/srv" } };
static struct refd_pair stats[] = { { "flushes", "1234" },
	{ "transactions", "2000" }, { "refs_ok", "1" }, { "total_us_p50", "0" },
	{ "total_us_p99", "99" }, { "total_us_max", "18446744073709551615" },
	{ "flush_us_p50", "1000" }, { "flush_us_p99", "10000" },
	{ "flush_us_max", "100000000" } };
static struct refd_pair top[] = { { "total_us_p50", "850" },
	{ "total_us_p99", "1250" }, { "total_us_max", "3400000" } };
static struct refd_pair slow[] = { { "limit_ms", "1000" },
	{ "slow_transactions", "1" }, { "slow.time_ms", "0" },
	{ "slow.uid", "0" }, { "slow.outcome", "committed" },
	{ "slow.repo", "/srv/a.git" }, { "slow.ref", "refs/heads/x" },
	{ "slow.refs", "2" }, { "slow.total_us", "3400000" },
	{ "slow.queue_us", "3300000" } };

static struct page page;
static struct refd_record records[12];
static struct refd_change changes[24];
static struct refd_answer history;
static struct text out;

static void setup(void)
{
	page = (struct page){ .host = "host",
		.parts = { PAIRS(status), PAIRS(stats), PAIRS(top),
		    PAIRS(slow) } };
	history = (struct refd_answer){ .kind = REFD_ANSWER_RECORDS,
		.changes = changes };
	memset(records, 0, sizeof(records));
	memset(changes, 0, sizeof(changes));
}

/* These answers and reasons are not of the heap. */
static void teardown(void)
{
	memset(page.parts, 0, sizeof(page.parts));
	memset(page.why, 0, sizeof(page.why));
	page_done(&page);
	text_done(&out);
}

static struct refd_record *add_change(size_t record, enum refd_status answered)
{
	changes[history.nr_changes++] =
	    (struct refd_change){ .record = &records[record],
		    .status = answered,
		    .name = "refs/heads/x" };
	records[record].repo = "/srv/a.git";
	return &records[record];
}

static bool has(const char *what)
{
	return strstr(out.data, what) != NULL;
}

static void wants(const char *what)
{
	ck_assert_msg(has(what), "no '%s' in %s", what, out.data);
}

/* The length of the tag at S, "<...>", with its strings. */
static size_t tag_len(const char *s)
{
	bool is_string = false;
	size_t i;

	for (i = 0; s[i] && (is_string || s[i] != '>'); i++)
		is_string ^= s[i] == '"';
	ck_assert_msg(s[i] == '>', "a tag without an end: '%.40s'", s);
	return i + 1;
}

/* Renders the page with the changes that were added, and takes the next ones
 * for older. All tags are of the page itself, and closed in their order. */
static void render(void)
{
	static const char known[] =
	    " html head meta link style title body h1 h2 p div table tr th td "
	    "meter svg text line rect ";
	char opened[32][16], name[16], word[20];
	size_t nr = 0, len;
	const char *s;
	bool closes;

	page_count(&page, &history);
	history.nr_changes = 0;
	text_clear(&out);
	page_render(&page, &out);
	ck_assert(!strncmp(out.data, "<!DOCTYPE html>\n<html ", 22));
	ck_assert_str_eq(out.data + out.len - 8, "</html>\n");
	for (s = out.data + 15; (s = strchr(s, '<')); s += len) {
		closes = s[1] == '/';
		len = tag_len(s);
		snprintf(name, sizeof(name), "%.*s",
		    (int)strcspn(s + 1 + closes, " />"), s + 1 + closes);
		snprintf(word, sizeof(word), " %s ", name);
		ck_assert_msg(strstr(known, word) != NULL, "'%.40s'", s);
		if (!strcmp(name, "meta") || !strcmp(name, "link") ||
		    s[len - 2] == '/')
			continue;
		if (!closes) {
			ck_assert_uint_lt(nr, 32);
			strcpy(opened[nr++], name);
			continue;
		}
		ck_assert_uint_gt(nr, 0);
		ck_assert_str_eq(opened[--nr], name);
	}
	ck_assert_uint_eq(nr, 0);
	for (s = out.data; *s; s++)
		ck_assert((unsigned char)*s >= ' ' || *s == '\n');
}

CASE(.name = "page", .setup = setup, .teardown = teardown);

TEST(a_page_has_all_parts)
{
	add_change(0, REFD_OK);
	render();
	wants("<p>As of 1970-01-01T00:00:00Z.");
	wants("<p class=\"ok\">refd serves /srv; up 5 s;");
	wants("1,234 flushes of the journal for 2,000 transactions with 1 ref "
	      "that is ok.");
	wants("<td class=\"number\">850 us</td><td class=\"number\">1.2 ms</td>"
	      "<td class=\"number\">3.4 s</td>");
	wants("<p>History, the newest part: 1 change since 1970-");
	wants("<p>Since the start: 1 transaction longer than the limit, "
	      "now 1.0 s.</p>");
	wants("<td>queue 3.3 s</td><td class=\"name\">root: /srv/a.git "
	      "refs/heads/x ...: committed</td>");
}

/* On the axis, a factor of ten has 57 units. */
TEST(bars_stand_where_their_times_are)
{
	const char *none;

	render();
	wants("<rect x=\"114\" width=\"57\" height=\"14\"/>"
	      "<rect class=\"slow\" x=\"171\" y=\"5\" width=\"229\"");
	wants("<rect x=\"0\" width=\"56\" height=\"14\"/>"
	      "<rect class=\"slow\" x=\"56\" y=\"5\" width=\"344\"");
	/* There was no flush in the last seconds. */
	none = strstr(out.data, "flushes, last seconds");
	ck_assert(
	    none && strstr(none, "<rect") > strstr(none, "flushes, since"));
}

TEST(no_name_becomes_markup)
{
	static struct refd_pair evil[] = { { "state", EVIL }, { "fatal", EVIL },
		{ "flush_hangs_s", "1" }, { "flush_hangs_on", EVIL },
		{ "stall.text", EVIL }, { "log.time_ms", "0" },
		{ "log.level", EVIL }, { "log.text", EVIL },
		{ "recent_io", "1" }, { "failed.repo", EVIL },
		{ "failed.ref", EVIL }, { "failed.error", EVIL } };
	static struct refd_pair evil_slow[] = { { "limit_ms", "1" },
		{ "slow.repo", EVIL }, { "slow.ref", EVIL },
		{ "slow.outcome", EVIL } };
	static char reason[] = EVIL;
	struct refd_record *record = add_change(0, REFD_OK);

	snprintf(page.host, sizeof(page.host), "%s", EVIL);
	page.parts[PAGE_STATUS] = PAIRS(evil);
	page.parts[PAGE_SLOW] = PAIRS(evil_slow);
	page.why[PAGE_STATS].data = reason;
	record->identities[0] = (struct refd_identity){ "GL_USER", EVIL };
	record->nr_identities = 1;
	render();
	wants("root (&#39;&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;"
	      "&#38;?[2J?"
	      "?)");
	wants("<title>refd on &#39;");
	wants("<p>Not shown: &#39;");
	page.why[PAGE_STATUS].data = reason;
	render();
	wants("<p class=\"plain below\">&#39;");
}

TEST(the_busiest_user_comes_first)
{
	const char *first, *second, *third;
	size_t i;

	records[0].uid = NOBODY;
	records[2].origin = REFD_ORIGIN_SEEN;
	add_change(0, REFD_STALE);
	add_change(2, REFD_OK);
	add_change(2, REFD_OK);
	for (i = 0; i < 3; i++)
		add_change(1, REFD_OK);
	render();
	first = strstr(out.data,
	    "root<meter max=\"3\" value=\"3\"></meter></td>"
	    "<td>3</td><td>0</td>");
	second = strstr(out.data, "unknown (found on disk)<meter");
	third = strstr(out.data,
	    "uid=3999999999<meter max=\"3\" value=\"1\">"
	    "</meter></td><td>1</td><td>1</td>");
	ck_assert(first && first < second && second < third);
	ck_assert(!has("users more"));
	for (i = 3; i < 12; i++) {
		records[i].uid = NOBODY + (uint32_t)i;
		add_change(i, REFD_OK);
	}
	render();
	wants("<p>History, the newest part: 15 changes since 1970-");
	wants("<p>2 users more.</p>");
}

TEST(a_daemon_that_is_away)
{
	static char reason[] = "nobody listens; start the daemon";

	page.why[PAGE_STATUS].data = reason;
	render();
	wants(
	    "<p class=\"error\">refd gives no state.</p>\n"
	    "<p class=\"plain below\">nobody listens; start the daemon</p>\n");
	wants("journalctl -u refd");
	ck_assert(!has("<h2>") && !has("serves"));
}

TEST(what_is_denied_has_a_reason)
{
	static char reason[] = "not for you";

	page.why[PAGE_TOP].data = page.why[PAGE_SLOW].data = reason;
	render();
	wants("<h2>Slow transactions</h2>\n<p>Not shown: not for you</p>\n");
	wants("transactions, since the start");
	ck_assert(!has("last seconds") && !has("longer than"));
}

TEST(a_slow_log_that_is_off)
{
	static struct refd_pair off[] = { { "limit_ms", "0" },
		{ "slow_transactions", "0" } };

	page.parts[PAGE_SLOW] = PAIRS(off);
	render();
	wants("<p>The slow log is off (daemon.slowLog).</p>\n");
	ck_assert(!has("longer than"));
}

/* ---- asking ---- */

/* Tells the numbers late, and comes to no change in history. */
static void is_slow(struct fake *f)
{
	struct refd_request req;
	struct refd_answer ans;
	char c;

	fake_serve(f);
	while (recv(f->conn, &c, 1, MSG_PEEK) == 1) {
		fake_read(f, &req);
		if (req.verb == REFD_VERB_STATS)
			clock_nap(LATE_MS, CLOCK_FOREVER);
		ans = PAIRS(status);
		if (req.verb == REFD_VERB_LOG) {
			ans.kind = REFD_ANSWER_RECORDS;
			ans.more = true;
		}
		ans.request_id = req.request_id;
		fake_answer(f, &ans);
		refd_request_done(&req);
	}
}

static void setup_asks(void)
{
	tmp_setup();
	setup();
}

static void teardown_asks(void)
{
	teardown();
	tmp_teardown();
}

CASE(.name = "asks", .setup = setup_asks, .teardown = teardown_asks,
    .seconds = 60);

/* Without a socket for administration, the other one answers. */
TEST(a_daemon_that_is_slow)
{
	uint64_t begin = clock_now_ms();
	struct fake fake;

	fake_start_script(&fake, is_slow);
	page_ask(&page, fake.path);
	fake_stop(&fake);
	ck_assert_uint_lt(clock_now_ms() - begin, LATE_MS + QUESTION_MS);
	render();
	wants("<p class=\"ok\">refd serves /srv; ");
	wants("<h2>Who changes refs</h2>\n"
	      "<p>Not shown: refd was still reading history</p>\n");
	page_done(&page);
}
