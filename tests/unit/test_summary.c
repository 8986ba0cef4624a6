/*
 * Proves the sentence of refd status for every state and every problem, that
 * each problem has a remedy, and that the lines fit a narrow terminal. No value
 * from outside reaches the terminal as a control character.
 */
#include <string.h>

#include "client/admin/summary.h"
#include "proto/lib/cli.h"
#include "proto/lib/colour.h"
#include "tests/lib/suite.h"

#define HOUR_MS (3600 * 1000ULL)
#define NOW_MS  (100 * HOUR_MS)

static struct text out;

/* Renders PAIRS: "key=value ...", with '_' instead of a blank in a value. */
static void render(const char *pairs, size_t columns)
{
	char copy[4096], *at = copy, *word, *c;
	struct refd_pair list[64];
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS, .pairs = list };

	snprintf(copy, sizeof(copy), "%s", pairs);
	while ((word = strsep(&at, " "))) {
		struct refd_pair *pair = &list[ans.nr_pairs++];

		pair->key = strsep(&word, "=");
		for (c = word; *c; c++)
			if (*c == '_')
				*c = ' ';
		pair->value = word;
	}
	text_clear(&out);
	summary_render(&ans, NOW_MS, columns, &out);
}

#define SERVING                                                                \
	"state=serving uptime_s=259200 connections=7 paused=no waiting=0 "     \
	"in_store=0 prepared=0 durability=journal durability_weakest=journal " \
	"fatal= recent_ms=10000 recent_transactions=125 recent_refs=1250 "     \
	"recent_flush_us_p50=850 recent_flush_us_p99=1250 flush_hangs_s=0 "    \
	"awaiting_repos=0 doubted_filesystems=0 journal_damaged=0 "

/* The first line is SENTENCE. A problem has a remedy in the next line. */
static void begins(const char *pairs, const char *sentence)
{
	size_t len = strlen(sentence);

	render(pairs, 0);
	ck_assert_msg(!strncmp(out.data, sentence, len) &&
		out.data[len] == '\n',
	    "wanted '%s', got '%s'", sentence, out.data);
	if (strstr(sentence, "; up ") == NULL)
		ck_assert_msg(!strncmp(out.data + len + 1, "    ", 4),
		    "no remedy: '%s'", out.data);
	text_done(&out);
}

/* The tests may run on a terminal. */
static void without_colour(void)
{
	colour_take(NULL, "never");
}

CASE(.setup = without_colour);

TEST(test_serving)
{
	begins(SERVING "root.path=/srv/git root.path=/a root.path=/b",
	    "refd serves /srv/git and 2 more roots; up 3 days; "
	    "12.5 transactions/s; all updates durable.");
	begins(SERVING "root.path=/srv/git",
	    "refd serves /srv/git; up 3 days; 12.5 transactions/s; "
	    "all updates durable.");
	/* Only root and the daemon's account see roots. */
	begins(SERVING "awaiting_refs=0",
	    "refd serves; up 3 days; 12.5 transactions/s; "
	    "all updates durable.");
	render(SERVING "awaiting_refs=0", 0);
	ck_assert_ptr_nonnull(strstr(out.data,
	    "\nLast 10 s: 125.0 refs/s; a flush takes 850 us, 99% take less "
	    "than 1.2 ms.\nNow: 7 connections.\n"));
	text_done(&out);
}

TEST(test_weak_modes)
{
	begins("state=serving uptime_s=5 durability=none "
	       "durability_weakest=none",
	    "refd serves; up 5 s; 0.0 transactions/s; "
	    "updates not durable at once (mode none).");
	begins("state=serving uptime_s=5 durability=fsync "
	       "durability_weakest=periodic",
	    "refd serves; up 5 s; 0.0 transactions/s; "
	    "some roots not durable at once (mode periodic).");
}

TEST(test_states)
{
	begins("state=recovering progress=120_of_4000",
	    "refd is recovering: 120 of 4,000 records.");
	begins("state=recovering progress=0_of_0", "refd is recovering.");
	begins("state=serving paused=yes paused_s=300 waiting=12",
	    "refd has been paused for 5 min; 12 transactions wait.");
	begins("state=serving paused=yes paused_s=1 waiting=1",
	    "refd has been paused for 1 s; 1 transaction waits.");
	begins("state=draining waiting=3 in_store=2",
	    "refd is draining and accepts nothing new; "
	    "5 transactions are left.");
	begins("state=draining fatal=the_journal_is_gone waiting=3",
	    "refd cannot go on: the journal is gone.");
}

TEST(test_problems)
{
	begins(SERVING "flush_hangs_s=0 awaiting_refs=0",
	    "refd serves; up 3 days; 12.5 transactions/s; "
	    "all updates durable.");
	begins("state=serving flush_hangs_s=20 flush_hangs_on=/srv",
	    "refd serves, but a flush of /srv has hung for 20 s.");
	/* Others than root do not learn the path. */
	begins("state=serving flush_hangs_s=20",
	    "refd serves, but a flush of a disk has hung for 20 s.");
	begins("state=serving stall.stage=admission "
	       "stall.text=admission_has_worked_on_'/a'_for_9_s",
	    "refd serves, but the stage admission has worked on '/a' for 9 s.");
	begins("state=serving recent_ms=9000 recent_nospace=7",
	    "refd serves, but 7 refs failed in the last 9 s because a disk is "
	    "full.");
	begins("state=serving recent_ms=9000 recent_io=1",
	    "refd serves, but 1 ref failed in the last 9 s because a file is "
	    "missing, damaged or unreadable.");
	begins("state=serving recent_ms=9000 recent_io=1 recent_disk_errors=1",
	    "refd serves, but a disk reported errors in the last 9 s.");
	begins("state=serving awaiting_repos=3 awaiting_refs=1200",
	    "refd serves, but 3 repositories have deferred records of "
	    "1,200 refs.");
	begins("state=serving awaiting_repos=1 awaiting_refs=1",
	    "refd serves, but 1 repository has deferred records of 1 ref.");
	begins("state=serving doubted_filesystems=2",
	    "refd serves, but 2 file systems failed to sync.");
	begins("state=serving journal_damaged=1",
	    "refd serves, but the journal is damaged.");
}

TEST(test_several_problems)
{
	render("state=serving awaiting_repos=1 awaiting_refs=1 "
	       "doubted_filesystems=1",
	    0);
	ck_assert_ptr_nonnull(strstr(out.data, "refd serves, but 1 rep"));
	ck_assert_ptr_nonnull(
	    strstr(out.data, "\nAlso, 1 file system failed to sync.\n    "));
	text_clear(&out);
	render("state=serving paused=yes paused_s=60 doubted_filesystems=1", 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\nAlso, 1 file system"));
	ck_assert_ptr_null(strstr(out.data, "serves"));
	text_done(&out);
}

/* Only an error of a disk is called so. */
TEST(test_failed_repositories)
{
	render("state=serving recent_ms=9000 recent_io=2 "
	       "failed.repo=/a failed.ref=refs/heads/x "
	       "failed.error=packed-refs_has_a_malformed_line "
	       "failed.repo=/b failed.ref=HEAD "
	       "failed.error=cannot_update_ref_'HEAD'",
	    0);
	ck_assert_ptr_nonnull(strstr(out.data,
	    "unreadable.\n"
	    "    /a: refs/heads/x: packed-refs has a malformed line\n"
	    "    /b: cannot update ref 'HEAD'\n"
	    "    'refd verify'"));
	ck_assert_ptr_null(strstr(out.data, "disk"));
	text_clear(&out);
	render("state=serving recent_ms=9000 recent_io=2 recent_disk_errors=1",
	    0);
	ck_assert_ptr_nonnull(strstr(out.data, "but a disk reported errors"));
	ck_assert_ptr_nonnull(strstr(out.data, "Also, 2 refs failed"));
	text_done(&out);
}

TEST(test_log)
{
	/* NOW_MS is 360,000,000. The newest line comes first. */
	render(SERVING "log.time_ms=359880000 log.level=error log.text=four "
		       "log.time_ms=352800000 log.level=warning log.text=three "
		       "log.time_ms=352800000 log.level=warning log.text=two "
		       "log.time_ms=352800000 log.level=warning log.text=one",
	    0);
	ck_assert_ptr_nonnull(strstr(out.data,
	    "(all: refd status -v):\n    2 min ago, error: four\n"
	    "    2 h ago, warning: three\n    2 h ago, warning: two\n"));
	ck_assert_ptr_null(strstr(out.data, "one"));
	render(SERVING "log.time_ms=1000 log.level=error log.text=old", 0);
	ck_assert_ptr_null(strstr(out.data, "old"));
	ck_assert_ptr_null(strstr(out.data, "errors"));
	text_done(&out);
}

TEST(test_colours)
{
	ck_assert_ptr_null(colour_take(NULL, "always"));
	render(SERVING "awaiting_refs=0", 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\033[32mrefd serves;"));
	render("state=serving paused=yes", 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\033[33mrefd has been paused"));
	render("state=serving flush_hangs_s=9", 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\033[1;31mrefd serves, but a"));
	ck_assert_ptr_null(colour_take(NULL, "never"));
	text_done(&out);
}

TEST(test_narrow)
{
	const char *s;
	size_t len;

	render("state=serving awaiting_repos=3 awaiting_refs=1200 "
	       "doubted_filesystems=1 root.path=/srv flush_hangs_s=70 "
	       "flush_hangs_on=/srv\033[2J recent_ms=5000 "
	       "recent_io=1 failed.repo=/c\033[2J failed.ref=\033c "
	       "failed.error=\007_d "
	       "recent_flush_us_p99=9 stall.text=a\033]0;x\007 "
	       "log.time_ms=359880000 log.level=error log.text=a\033[2J_b",
	    40);
	for (s = out.data; *s; s += len + 1) {
		len = strcspn(s, "\n");
		ck_assert_msg(len <= 40, "'%.*s'", (int)len, s);
	}
	ck_assert_ptr_null(strchr(out.data, '\033'));
	ck_assert_ptr_null(strchr(out.data, '\007'));
	text_done(&out);
}
