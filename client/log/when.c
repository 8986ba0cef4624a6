#include "client/log/when.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/git/gitdate.h"

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
	    cli_number(copy, UINT64_MAX, &lsn) &&
	    (!dot || cli_number(dot, UINT32_MAX, &nr));
	free(copy);
	if (!ok)
		return false;
	p->has_journal = colon != NULL;
	p->at = (struct refd_position){ lsn, (uint32_t)nr };
	return true;
}

/* ---- times ---- */

/* Removes a fraction such as ".123" from S and returns its milliseconds. */
static uint64_t cut_fraction(char *s)
{
	char *dot = strchr(s, '.'), *end;
	uint64_t ms = 0, unit = 100;

	if (!dot || dot == s || dot[-1] < '0' || dot[-1] > '9')
		return 0;
	for (end = dot + 1; *end >= '0' && *end <= '9'; end++) {
		ms += unit * (uint64_t)(*end - '0');
		unit /= 10;
	}
	if (end == dot + 1)
		return 0;
	memmove(dot, end, strlen(end) + 1);
	return ms;
}

static bool has_zone(const char *s)
{
	char *with_one = xasprintf("%s Z", s);
	struct gitdate date;
	bool has = !gitdate_parse(with_one, &date);

	free(with_one);
	return has;
}

/* Did the local clock show this time twice, at the end of summer time? Clocks
 * are set back by an hour or by half an hour. */
static bool is_twice(int64_t secs)
{
	static const int shifts[] = { -3600, -1800, 1800, 3600 };
	time_t t = (time_t)secs, other;
	struct tm here, there;
	size_t i;

	localtime_r(&t, &here);
	for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		other = t + shifts[i];
		localtime_r(&other, &there);
		if (here.tm_min == there.tm_min &&
		    here.tm_hour == there.tm_hour)
			return true;
	}
	return false;
}

/* A date alone is its first second, and a minute as well. */
static char *with_clock(const char *s)
{
	static const char form[] = "dddd-dd-dd dd:dd", rest[] = " 00:00:00";
	size_t i;

	for (i = 0; s[i] && form[i]; i++)
		if (form[i] == 'd' ?
			s[i] < '0' || s[i] > '9' :
			s[i] != form[i] && (i != 10 || s[i] != 'T'))
			break;
	if (!s[i] && i == 10)
		return xasprintf("%s%s", s, rest);
	return xasprintf("%s%s", s,
	    !s[i] && i == sizeof(form) - 1 ? rest + 6 : "");
}

static bool parse_date(const char *s, uint64_t *ms, bool *is_unclear)
{
	char *copy = with_clock(s);
	uint64_t fraction = cut_fraction(copy), secs;
	struct gitdate date;
	bool ok = true;

	if (*copy == '@' && cli_number(copy + 1, UINT32_MAX, &secs)) {
		*ms = secs * 1000 + fraction;
	} else if (gitdate_parse(copy, &date) && date.secs > 0) {
		*ms = (uint64_t)date.secs * 1000 + fraction;
		*is_unclear = !has_zone(copy) && is_twice(date.secs);
	} else {
		ok = false;
	}
	free(copy);
	return ok;
}

/* Takes WORD and the blanks or periods behind it. */
static bool take_word(const char **s, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*s, word, len) != 0 || isalpha((unsigned char)(*s)[len]))
		return false;
	*s += len + strspn(*s + len, " .");
	return true;
}

static bool take_unit(const char **s, uint64_t nr, time_t *at)
{
	static const struct {
		const char *one, *many;
		unsigned secs, months; /* a month has no fixed length */
	} units[] = { { "second", "seconds", 1, 0 },
		{ "minute", "minutes", 60, 0 }, { "hour", "hours", 3600, 0 },
		{ "day", "days", 86400, 0 }, { "week", "weeks", 604800, 0 },
		{ "month", "months", 0, 1 }, { "year", "years", 0, 12 } };
	struct tm tm;
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (take_word(s, units[i].one) || take_word(s, units[i].many))
			break;
	if (i == sizeof(units) / sizeof(units[0]))
		return false;
	*at -= (time_t)(nr * units[i].secs);
	if (units[i].months && localtime_r(at, &tm)) {
		tm.tm_mon -= (int)(nr * units[i].months);
		tm.tm_isdst = -1;
		*at = mktime(&tm);
	}
	return true;
}

/* "2 hours ago", "1 day 2 hours ago", "2.hours.ago", "yesterday", "now". */
static bool parse_ago(const char *s, uint64_t *ms)
{
	time_t at = time(NULL);
	char *end;
	uint64_t nr;

	if (take_word(&s, "yesterday"))
		at -= 86400;
	else if (!take_word(&s, "now"))
		do {
			nr = strtoull(s, &end, 10);
			if (*s < '0' || *s > '9' || nr > 100000000)
				return false;
			s = end + strspn(end, " .");
			if (!take_unit(&s, nr, &at))
				return false;
		} while (!take_word(&s, "ago"));
	*ms = at > 0 ? (uint64_t)at * 1000 : 1;
	return !*s;
}

bool when_parse(const char *s, uint64_t *ms, struct text *why)
{
	bool is_unclear = false;

	if (!parse_ago(s, ms) && !parse_date(s, ms, &is_unclear))
		text_addf(why,
		    "'%s' is no time: write 2026-08-01, "
		    "2026-08-01T12:00:00+0200, @1785578400, "
		    "'2 hours ago' or yesterday",
		    s);
	else if (is_unclear)
		text_addf(why,
		    "the local clock showed '%s' twice: add the "
		    "time zone, such as +0200",
		    s);
	*ms += !*ms;
	return !why->len;
}

/* time() can be some milliseconds behind, in the second before. */
bool when_past(const char *s, uint64_t *ms, struct text *why)
{
	struct timespec now;

	if (!when_parse(s, ms, why))
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	if (*ms > (uint64_t)now.tv_sec * 1000 + 999)
		text_addf(why, "'%s' is in the future", s);
	return !why->len;
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
