/*
 * Proves how findings are printed: equal findings of many repositories are one
 * group with a count and a few names, different findings are not; with -v and
 * as JSON each finding is printed; control characters of names reach neither a
 * terminal nor JSON; and the number of findings in memory has a limit. After
 * Control-C the findings so far are printed. A terminal shows the progress.
 * What another process tells is about one repository.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/lib/colour.h"
#include "proto/lib/finding.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/progress.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct findings f;
static int out = -1;

/* Added to the clock. */
static time_t clock_ahead_s;

/* Instead of the function of libc. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	long r = syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += clock_ahead_s;
	return (int)r;
}

/* Standard output goes to the file "out" until said(). */
static void setup(void)
{
	tmp_setup();
	memset(&f, 0, sizeof(f));
	fflush(stdout);
	out = dup(STDOUT_FILENO);
	tmp_put("out", "");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	ck_assert_ptr_nonnull(freopen("out", "w", stdout));
	ck_assert_int_eq(chdir("/"), 0);
}

static char *said(void)
{
	fflush(stdout);
	return tmp_get("out");
}

static void teardown(void)
{
	fflush(stdout);
	ck_assert_int_ge(dup2(out, STDOUT_FILENO), 0);
	close(out);
	findings_done(&f);
	tmp_teardown();
}

static void add(enum finding_id id, const char *repo, const char *ref,
    const char *text)
{
	const struct finding finding = { .id = id,
		.repo = repo,
		.ref = ref,
		.text = text };

	findings_add(&f, &finding);
}

/* The same finding in NR repositories. */
static void add_many(size_t nr)
{
	char repo[64], text[128];
	size_t i;

	for (i = 0; i < nr; i++) {
		snprintf(repo, sizeof(repo), "/srv/%zu.git", i);
		snprintf(text, sizeof(text), "there is no '%s/hooks/x'", repo);
		add(FOUND_HOOK_MISSING, repo, NULL, text);
	}
}

static void ends(bool is_left, const char *wanted)
{
	char *text;

	ck_assert_int_eq(findings_end(&f, 5), is_left);
	text = said();
	ck_assert_str_eq(text, wanted);
	free(text);
}

CASE(.setup = setup, .teardown = teardown);

TEST(nothing)
{
	ends(false,
	    "5 repositories: 0 errors, 0 warnings, 0 notes; "
	    "0 repaired\n");
}

TEST(one)
{
	add_many(1);
	ends(true,
	    "error: hook-missing: /srv/0.git: there is no "
	    "'/srv/0.git/hooks/x'\n"
	    "    remedy: refd enable /srv/0.git\n"
	    "5 repositories: 1 error, 0 warnings, 0 notes; 0 repaired\n");
}

TEST(many_repositories)
{
	add_many(5);
	ends(true,
	    "error: hook-missing: 5 repositories: there is no "
	    "'<repository>/hooks/x'\n"
	    "    /srv/0.git\n    /srv/1.git\n    /srv/2.git\n"
	    "    and 2 more; -v shows each\n"
	    "    remedy: refd enable <repository>\n"
	    "5 repositories: 5 errors, 0 warnings, 0 notes; 0 repaired\n");
}

/* A repository with many findings does not hide the others. */
TEST(many_refs)
{
	static const char *const refs[] = { "a", "b", "c", "d", "e" };
	size_t i;

	for (i = 0; i < 5; i++)
		add(FOUND_REF_BROKEN, "/a.git", refs[i], "its file is empty");
	add(FOUND_REF_BROKEN, "/b.git", "a", "its file is empty");
	ends(true,
	    "error: ref-broken: 6 places in 2 repositories: its file is empty\n"
	    "    /a.git a\n    /a.git b\n    /a.git c\n    /b.git a\n"
	    "    and 2 more; -v shows each\n"
	    "    remedy: refd verify --repair <repository> restores a value "
	    "that the journal or the reflog has\n"
	    "5 repositories: 6 errors, 0 warnings, 0 notes; 0 repaired\n");
}

/* A remedy never leads in a circle. */
TEST(no_second_repair)
{
	enum finding_id id;
	char *text;

	for (id = 0; id < FINDING_IDS; id++) {
		const struct finding finding = { .id = id,
			.repo = "/a.git",
			.text = "x",
			.repair = "not repaired: y" };

		findings_add(&f, &finding);
	}
	findings_end(&f, 1);
	text = said();
	ck_assert_ptr_nonnull(strstr(text, "not repaired: y"));
	ck_assert_ptr_null(strstr(text, "--repair"));
	free(text);
}

/* A rare reason is not hidden by a frequent one. */
TEST(different_texts)
{
	add(FOUND_NOT_CHECKED, "/a", NULL, "'/a' is not under a root");
	add(FOUND_NOT_ENABLED, "/a", NULL, "x");
	add(FOUND_NOT_CHECKED, "/b", NULL, "'/b' belongs to another journal");
	add(FOUND_NOT_CHECKED, "/c", NULL, "'/c' is not under a root");
	/* The path of another repository counts. */
	add(FOUND_NOT_CHECKED, "/d", NULL, "'/a' is not under a root");
	ends(true,
	    "error: not-checked: /d: '/a' is not under a root\n"
	    "    remedy: run refd doctor as the owner of the repository\n"
	    "error: not-checked: /b: '/b' belongs to another journal\n"
	    "    remedy: run refd doctor as the owner of the repository\n"
	    "error: not-checked: 2 repositories: '<repository>' is not "
	    "under a root\n"
	    "    /a\n    /c\n"
	    "    remedy: run refd doctor as the owner of the repository\n"
	    "note: not-enabled: /a: x\n"
	    "    remedy: refd enable /a\n"
	    "5 repositories: 4 errors, 0 warnings, 1 note; 0 repaired\n");
}

TEST(verbose)
{
	f.verbose = true;
	add_many(2);
	ends(true,
	    "error: hook-missing: /srv/0.git: there is no "
	    "'/srv/0.git/hooks/x'\n"
	    "    remedy: refd enable /srv/0.git\n"
	    "error: hook-missing: /srv/1.git: there is no "
	    "'/srv/1.git/hooks/x'\n"
	    "    remedy: refd enable /srv/1.git\n"
	    "5 repositories: 2 errors, 0 warnings, 0 notes; 0 repaired\n");
}

TEST(json)
{
	f.as_json = true;
	add_many(1);
	findings_checked(&f, true, "/srv/0.git");
	ends(true,
	    "{\"findings\":["
	    "{\"id\":\"hook-missing\",\"severity\":\"error\","
	    "\"repo\":\"/srv/0.git\",\"ref\":\"\",\"file\":\"\","
	    "\"text\":\"there is no '/srv/0.git/hooks/x'\","
	    "\"remedy\":\"refd enable /srv/0.git\",\"can_repair\":true,"
	    "\"repair\":\"\",\"repaired\":false}],"
	    "\"looked_at\":[\"/srv/0.git\"],"
	    "\"repositories\":5,\"errors\":1,\"warnings\":0,\"notes\":0,"
	    "\"repaired\":0,\"interrupted\":false}\n");
}

TEST(json_of_nothing)
{
	f.as_json = true;
	ends(false,
	    "{\"findings\":[],\"looked_at\":[],"
	    "\"repositories\":5,\"errors\":0,\"warnings\":0,"
	    "\"notes\":0,\"repaired\":0,\"interrupted\":false}\n");
}

TEST(repaired)
{
	struct findings before = { 0 };

	add_many(3);
	before = f;
	memset(&f, 0, sizeof(f));
	add(FOUND_HOOK_MISSING, "/srv/1.git", NULL, "another text");
	findings_add_repaired(&f, &before);
	findings_done(&before);
	ends(true,
	    "repaired: hook-missing: 2 repositories: there is no "
	    "'<repository>/hooks/x'\n"
	    "    /srv/0.git\n    /srv/2.git\n"
	    "error: hook-missing: /srv/1.git: another text\n"
	    "    remedy: refd enable /srv/1.git\n"
	    "5 repositories: 1 error, 0 warnings, 0 notes; 2 repaired\n");
}

TEST(hostile_names)
{
	add(FOUND_NOT_ENABLED, "/a;rm -rf .", NULL, "\033[2J\302\233x\377");
	ends(false,
	    "note: not-enabled: /a;rm -rf .: ?[2J?x?\n"
	    "    remedy: refd enable <repository>\n"
	    "5 repositories: 0 errors, 0 warnings, 1 note; 0 repaired\n");
}

TEST(hostile_json)
{
	char *text;

	f.as_json = true;
	add(FOUND_NOT_ENABLED, "/\"\\", NULL, "\033\302\233\377\n");
	findings_end(&f, 1);
	text = said();
	ck_assert_ptr_nonnull(strstr(text, "\"repo\":\"/\\\"\\\\\""));
	ck_assert_ptr_nonnull(
	    strstr(text, "\"text\":\"\\u001b\\u009b\\ufffd\\u000a\""));
	free(text);
}

TEST(colour)
{
	colour_take(NULL, "always");
	add_many(1);
	ends(true,
	    "\033[1;31merror\033[m: hook-missing: /srv/0.git: there is no "
	    "'/srv/0.git/hooks/x'\n"
	    "    \033[1mremedy\033[m: refd enable /srv/0.git\n"
	    "5 repositories: 1 error, 0 warnings, 0 notes; 0 repaired\n");
}

/* Children that Control-C ended look like errors. */
TEST(interrupted)
{
	const struct finding mended = { .id = FOUND_LOG_TORN,
		.is_repaired = true,
		.repo = "/a.git",
		.text = "a torn line" };

	interrupt_catch();
	add_many(1);
	findings_checked(&f, true, "/a.git");
	raise(SIGINT);
	add_many(1);
	findings_checked(&f, true, "/b.git");
	findings_add(&f, &mended);
	ends(true,
	    "repaired: log-torn: /a.git: a torn line\n"
	    "error: hook-missing: /srv/0.git: there is no "
	    "'/srv/0.git/hooks/x'\n"
	    "    remedy: refd enable /srv/0.git\n"
	    "looked at /a.git\n"
	    "interrupted: these are the findings so far\n"
	    "5 repositories: 1 error, 0 warnings, 0 notes; 1 repaired\n");
}

TEST(limit)
{
	char *text;

	f.max = 4;
	add_many(10);
	ck_assert_uint_eq(f.nr, 2);
	ck_assert(findings_end(&f, 10));
	text = said();
	ck_assert_ptr_nonnull(strstr(text, ": 4 repositories: "));
	ck_assert_ptr_nonnull(strstr(text, ": 2 repositories: "));
	ck_assert_ptr_nonnull(strstr(text, ": 10 errors, "));
	free(text);
}

TEST(checked)
{
	char line[8];

	findings_checked(&f, false, "git 2.39");
	for (f.done = 1; f.done <= 5; f.done++) {
		snprintf(line, sizeof(line), "/%zu", f.done);
		findings_checked(&f, true, line);
	}
	ends(false,
	    "looked at git 2.39\nlooked at /1\nlooked at /2\nlooked at /3\n"
	    "looked at 2 more; -v names each\n"
	    "5 repositories: 0 errors, 0 warnings, 0 notes; 0 repaired\n");
}

/* The bytes that the terminal FD got. They may come in pieces. */
static void terminal_has(int fd, const char *wanted)
{
	char text[512];
	size_t len = 0;
	ssize_t n;

	while (len < strlen(wanted)) {
		n = read(fd, text + len, sizeof(text) - 1 - len);
		ck_assert_int_gt(n, 0);
		len += (size_t)n;
	}
	text[len] = '\0';
	ck_assert_str_eq(text, wanted);
}

TEST(progress)
{
	int pty = posix_openpt(O_RDWR | O_NOCTTY), err = dup(STDERR_FILENO);
	int tty;

	ck_assert_int_ge(pty, 0);
	ck_assert_int_eq(grantpt(pty), 0);
	ck_assert_int_eq(unlockpt(pty), 0);
	tty = open(ptsname(pty), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(tty, 0);
	dup2(tty, STDERR_FILENO);
	f.title = "Verifying repositories";
	f.total = 9;
	f.done = 2;
	/* Not in the first second, and then once a second. */
	findings_progress(&f, "/a.git", "HEAD");
	clock_ahead_s = 1;
	findings_progress(&f, "/a.git", "refs/\033x");
	findings_progress(&f, "/a.git", "refs/y");
	terminal_has(pty, "Verifying repositories:  11% (1/9), /a.git refs/?x");
	/* A finding removes the line. */
	add_many(1);
	ck_assert(findings_end(&f, 1));
	terminal_has(pty,
	    "\r                                                  \r");
	/* A number alone, if the total is not known. */
	f.total = 0;
	clock_ahead_s = 2;
	findings_progress(&f, "/b.git", "");
	terminal_has(pty, "Verifying repositories: 1, /b.git");
	progress_clear();
	dup2(err, STDERR_FILENO);
	close(err);
	close(tty);
	close(pty);
}

/* To F, which shall hear of /srv/a.git alone. */
static int tell(const void *data, size_t len)
{
	char *copy = malloc(len);
	size_t n;

	/* No part is taken for the whole, or read beyond its end. */
	memcpy(copy, data, len);
	for (n = 0; n < 4; n++)
		ck_assert(!findings_hear(&f, "/srv/a.git", copy, n));
	ck_assert(findings_hear(&f, "/srv/a.git", copy, len));
	copy[0] = 'x';
	ck_assert(!findings_hear(&f, "/srv/a.git", copy, len));
	free(copy);
	return 0;
}

TEST(told)
{
	struct findings other = { .tell = tell };

	findings_add(&other,
	    &(struct finding){ .id = FOUND_HOOK_MISSING,
		.repo = "/srv/b.git",
		.text = "there is no hook" });
	findings_add(&other,
	    &(struct finding){ .id = FOUND_STATE_ELSEWHERE,
		.file = "/var/lib/refd",
		.text = "far away" });
	findings_checked(&other, true, "/srv/a.git");
	ck_assert_uint_eq(other.nr, 0);
	ends(true,
	    "error: hook-missing: /srv/a.git: there is no hook\n"
	    "    remedy: refd enable /srv/a.git\n"
	    "note: state-elsewhere: /var/lib/refd: far away\n"
	    "    remedy: take both snapshots at once, or run refd checkpoint "
	    "before\n"
	    "looked at /srv/a.git\n"
	    "5 repositories: 1 error, 0 warnings, 1 note; 0 repaired\n");
	findings_done(&other);
}
