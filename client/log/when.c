#include "client/log/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/child.h"
#include "client/base/cli.h"

static bool parse_journal(const char *s, size_t len, uint8_t *journal)
{
	struct refd_txid id; /* has the same form */
	char hex[REFD_TXID_HEX + 1];

	if (len != REFD_TXID_HEX)
		return false;
	memcpy(hex, s, len);
	hex[len] = '\0';
	if (refd_txid_parse(hex, &id) < 0)
		return false;
	memcpy(journal, id.bytes, REFD_JOURNAL_ID_BYTES);
	return true;
}

bool when_position(const char *s, struct when_position *p)
{
	const char *colon = strchr(s, ':'), *at = colon ? colon + 1 : s;
	char *copy = xstrdup(at), *dot = strchr(copy, '.');
	uint64_t lsn, nr = 0;
	bool ok;

	if (dot)
		*dot++ = '\0';
	ok = (!colon || parse_journal(s, (size_t)(colon - s), p->journal)) &&
	    parse_number(copy, UINT64_MAX, &lsn) &&
	    (!dot || parse_number(dot, UINT32_MAX, &nr));
	free(copy);
	if (!ok)
		return false;
	p->has_journal = colon != NULL;
	p->at = (struct refd_position){ lsn, (uint32_t)nr };
	return true;
}

static void __attribute__((noreturn)) die_not_time(const char *s)
{
	die("'%s' is not a time that git understands, such as '2 hours ago' "
	    "or 2026-08-01T12:00:00+0200",
	    s);
}

/* git reads this setting without a repository. */
uint64_t when_time(const char *s)
{
	char *option = xasprintf("refd.time=%s", s);
	const char *argv[] = { "git", "-c", option, "config",
		"--type=expiry-date", "refd.time", NULL };
	struct text t = { 0 };
	uint64_t secs;

	if (child_capture_quiet(argv, &t) || !t.len)
		die_not_time(s);
	t.data[strcspn(t.data, "\n")] = '\0';
	if (!parse_number(t.data, UINT64_MAX / 1000 - 1, &secs))
		die_not_time(s);
	text_done(&t);
	free(option);
	return secs ? secs * 1000 : 1;
}

/* Times have milliseconds. */
const char *when_text(uint64_t ms, char buf[64])
{
	time_t secs = (time_t)(ms / 1000);
	char zone[8] = "";
	struct tm tm;
	size_t len;

	if (!localtime_r(&secs, &tm))
		return "?";
	len = strftime(buf, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(buf + len, 64 - len, ".%03u%s", (unsigned)(ms % 1000), zone);
	return buf;
}

const char *when_utc(uint64_t ms, char buf[64])
{
	time_t secs = (time_t)(ms / 1000);
	struct tm tm;
	size_t len;

	if (!gmtime_r(&secs, &tm))
		return "?";
	len = strftime(buf, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + len, 64 - len, ".%03uZ", (unsigned)(ms % 1000));
	return buf;
}

/* BUF has room for 40 bytes. */
static const char *ago(uint64_t nr, const char *unit, char *buf)
{
	snprintf(buf, 40, "%" PRIu64 " %s%s ago", nr, unit, nr == 1 ? "" : "s");
	return buf;
}

static const char *years_ago(uint64_t days, char buf[64])
{
	uint64_t months = (days * 24 + 365) / 730, years = months / 12;

	months %= 12;
	if (days >= 5 * 365)
		return ago((days + 183) / 365, "year", buf);
	if (!months)
		return ago(years, "year", buf);
	snprintf(buf, 64, "%" PRIu64 " year%s, ", years, years == 1 ? "" : "s");
	ago(months, "month", buf + strlen(buf));
	return buf;
}

/* As show_date_relative() of git's date.c. */
const char *when_relative(uint64_t ms, uint64_t now_ms, char buf[64])
{
	uint64_t n = now_ms / 1000 - ms / 1000;

	if (now_ms / 1000 < ms / 1000)
		return "in the future";
	if (n < 90)
		return ago(n, "second", buf);
	n = (n + 30) / 60;
	if (n < 90)
		return ago(n, "minute", buf);
	n = (n + 30) / 60;
	if (n < 36)
		return ago(n, "hour", buf);
	n = (n + 12) / 24;
	if (n < 14)
		return ago(n, "day", buf);
	if (n < 70)
		return ago((n + 3) / 7, "week", buf);
	if (n < 365)
		return ago((n + 15) / 30, "month", buf);
	return years_ago(n, buf);
}
