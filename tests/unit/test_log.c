/*
 * Proves that a log line is one line whatever it quotes, is cut at its limit,
 * and begins with the time, or with a priority for journald. Repeated lines are
 * limited, and the log tells their number. The last errors and warnings are
 * kept for queries. The service manager gets its messages, over a path and over
 * an abstract name.
 */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/service/notify.h"
#include "tests/lib/suite.h"

static int real_stderr;
static FILE *captured;
static char line[2 * LOG_LINE_MAX];

static void setup(void)
{
	unsetenv("JOURNAL_STREAM");
	real_stderr = dup(STDERR_FILENO);
	captured = tmpfile();
	ck_assert_ptr_nonnull(captured);
	ck_assert_int_eq(dup2(fileno(captured), STDERR_FILENO), STDERR_FILENO);
	log_init();
}

static void teardown(void)
{
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	fclose(captured);
}

/* Reads the only line of the log. */
static void read_line(void)
{
	size_t len;

	rewind(captured);
	len = fread(line, 1, sizeof(line) - 1, captured);
	line[len] = '\0';
	ck_assert_ptr_eq(strchr(line, '\n'), line + len - 1);
}

static void expect(const char *pattern)
{
	regex_t regex;

	ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	ck_assert_msg(regexec(&regex, line, 0, NULL, 0) == 0, "not %s: %s",
	    pattern, line);
	regfree(&regex);
}

CASE(.setup = setup, .teardown = teardown);

TEST(a_line_has_time_and_level)
{
	log_event(LOG_LEVEL_WARNING, "full", LOG_STR("path", "/a \"b\""),
	    LOG_NUM("percent", 99), LOG_WORD("mode", "batch"),
	    LOG_STR("ref", ""), LOG_TEXT("mind it"));
	read_line();
	expect(
	    "^2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
	    "\\.[0-9]{3}Z warning: event=full path=\"/a \\\\\"b\\\\\"\" percent=99 "
	    "mode=batch text=\"mind it\"\n$");
}

static void read_by_journald(void)
{
	char stream[64];
	struct stat st;

	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu",
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init();
}

TEST(journald_gets_a_priority)
{
	read_by_journald();
	log_event(LOG_LEVEL_ERROR, "broken", LOG_NUM("nr", -1));
	read_line();
	ck_assert_str_eq(line, "<3>event=broken nr=-1\n");
}

TEST(a_stream_that_is_not_ours_is_not_journald)
{
	setenv("JOURNAL_STREAM", "1:1", 1);
	log_init();
	log_event(LOG_LEVEL_INFO, "started", LOG_NUM("nr", 0));
	read_line();
	expect("Z info: event=started nr=0\n$");
}

TEST(what_is_quoted_forges_no_line)
{
	read_by_journald();
	log_event(LOG_LEVEL_INFO, "x",
	    LOG_STR("name", "a\n<0>b\" c=d\r\033[31m\x7f\xc2\x9b"));
	read_line();
	ck_assert_str_eq(line,
	    "<6>event=x name=\"a\\n<0>b\\\" c=d\\x0d\\x1b[31m\\x7f\\xc2\\x9b\"\n");
}

TEST(a_long_line_is_cut)
{
	static char text[2 * LOG_LINE_MAX];

	memset(text, 'x', sizeof(text) - 1);
	log_event(LOG_LEVEL_INFO, "long", LOG_STR("a", text),
	    LOG_STR("b", text), LOG_STR("c", text));
	read_line();
	ck_assert_uint_eq(strlen(line), LOG_LINE_MAX);
}

static void expect_notice(bool abstract)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char path[64], got[64] = "";
	socklen_t size;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	snprintf(path, sizeof(path), "%s/refd-notify-%d",
	    abstract ? "@" : "/tmp", (int)getpid());
	strcpy(addr.sun_path, path);
	size =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (abstract)
		addr.sun_path[0] = '\0';
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, size), 0);
	setenv("NOTIFY_SOCKET", path, 1);
	notify_connect();
	notify_manager("READY=1\nSTATUS=serving");
	notify_disconnect();
	ck_assert_int_eq(recv(fd, got, sizeof(got) - 1, 0), 22);
	ck_assert_str_eq(got, "READY=1\nSTATUS=serving");
	if (!abstract)
		unlink(path);
	close(fd);
}

TEST(the_service_manager_is_told)
{
	expect_notice(false);
	expect_notice(true);
	/* Without a service manager, nothing happens. */
	setenv("NOTIFY_SOCKET", "/nowhere/socket", 1);
	notify_connect();
	notify_manager("READY=1");
	unsetenv("NOTIFY_SOCKET");
	notify_connect();
	notify_manager("READY=1");
}

TEST(what_comes_again_is_limited)
{
	struct log_limit limit = { .burst = 2, .seconds = 3600 };
	struct log_limit *none = NULL;
	const char *said;
	int i;

	for (i = 1; i <= 5; i++)
		log_limited(&limit, LOG_LEVEL_WARNING, "again",
		    LOG_NUM("nr", i));
	limit.nr = 0; /* as if the hour were over */
	log_limited(&limit, LOG_LEVEL_ERROR, "again", LOG_NUM("nr", i));
	log_limited(none, LOG_LEVEL_INFO, "free", LOG_NUM("nr", i));
	rewind(captured);
	line[fread(line, 1, sizeof(line) - 1, captured)] = '\0';
	ck_assert_ptr_nonnull(strstr(line, "nr=1\n"));
	ck_assert_ptr_nonnull(strstr(line, "warning: event=again nr=2\n"));
	ck_assert_ptr_null(strstr(line, "nr=3"));
	ck_assert_ptr_null(strstr(line, "nr=5"));
	said = strstr(line, "error: event=again suppressed=3 nr=6\n");
	ck_assert_ptr_nonnull(said);
	ck_assert_ptr_nonnull(strstr(said, "info: event=free nr=6\n"));
}

TEST(the_last_are_kept)
{
	struct log_kept kept[LOG_KEPT];
	uint64_t errors, warnings;
	size_t i;

	ck_assert_uint_eq(log_recent(kept), 0);
	log_event(LOG_LEVEL_INFO, "none", LOG_NUM("nr", 0));
	log_event(LOG_LEVEL_ERROR, "first", LOG_NUM("nr", 0));
	for (i = 0; i < LOG_KEPT - 1; i++)
		log_event(LOG_LEVEL_WARNING, "more", LOG_NUM("nr", i));
	ck_assert_uint_eq(log_recent(kept), LOG_KEPT);
	ck_assert_str_eq(kept[0].text, "event=more nr=14");
	ck_assert(!kept[0].is_error);
	ck_assert_str_eq(kept[LOG_KEPT - 1].text, "event=first nr=0");
	ck_assert(kept[LOG_KEPT - 1].is_error);
	ck_assert_int_gt(kept[0].wall_ms, 0);
	log_event(LOG_LEVEL_WARNING, "one", LOG_STR("more", "a\nb"));
	ck_assert_uint_eq(log_recent(kept), LOG_KEPT);
	ck_assert_str_eq(kept[0].text, "event=one more=\"a\\nb\"");
	ck_assert_str_eq(kept[LOG_KEPT - 1].text, "event=more nr=0");
	log_counts(&errors, &warnings);
	ck_assert_uint_eq(errors, 1);
	ck_assert_uint_eq(warnings, LOG_KEPT);
}
