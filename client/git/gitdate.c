#include "client/git/gitdate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The local zone, for a date without a zone and for the present. */
static int local_zone(time_t t)
{
	struct tm tm;

	localtime_r(&t, &tm);
	return (int)(tm.tm_gmtoff / 60);
}

void gitdate_now(struct gitdate *date)
{
	time_t now = time(NULL);

	date->secs = now;
	date->zone = local_zone(now);
}

/* Reads exactly NR digits. */
static bool take_digits(const char **s, int nr, int *number)
{
	int n = 0;

	while (nr--) {
		if (**s < '0' || **s > '9')
			return false;
		n = n * 10 + (*(*s)++ - '0');
	}
	*number = n;
	return true;
}

static bool take_char(const char **s, char c)
{
	if (**s != c)
		return false;
	(*s)++;
	return true;
}

/* "+hhmm", "+hh:mm" or "Z", and nothing behind it. */
static bool take_zone(const char *s, int *zone)
{
	bool west = *s == '-';
	int hours, minutes;

	if (!strcmp(s, "Z") || !strcmp(s, "GMT") || !strcmp(s, "UTC")) {
		*zone = 0;
		return true;
	}
	if (*s != '+' && *s != '-')
		return false;
	s++;
	if (!take_digits(&s, 2, &hours))
		return false;
	take_char(&s, ':');
	if (!take_digits(&s, 2, &minutes) || *s || minutes > 59)
		return false;
	*zone = (hours * 60 + minutes) * (west ? -1 : 1);
	return true;
}

static bool parse_raw(const char *s, struct gitdate *date)
{
	bool marked = take_char(&s, '@');
	char *end;
	long long secs;

	if (*s < '0' || *s > '9')
		return false;
	secs = strtoll(s, &end, 10);
	/* git takes a smaller bare number for a year, a day, ..., so git
	 * decides. */
	if (!marked && secs < 100000000)
		return false;
	if (secs > INT64_MAX / 2 || *end++ != ' ' ||
	    (*end != '+' && *end != '-') || !take_zone(end, &date->zone))
		return false;
	date->secs = secs;
	return true;
}

/* Converts broken-down time in the zone REST, or in the local zone. */
static bool finish(struct tm *tm, const char *rest, struct gitdate *date)
{
	struct tm wanted = *tm;
	struct gitdate d;

	while (*rest == ' ')
		rest++;
	if (*rest) {
		if (!take_zone(rest, &d.zone))
			return false;
		d.secs = timegm(tm) - (int64_t)d.zone * 60;
	} else {
		tm->tm_isdst = -1;
		d.secs = mktime(tm);
		d.zone = local_zone((time_t)d.secs);
	}
	/* 31 February and similar dates were normalised, so git decides. */
	if (tm->tm_mday != wanted.tm_mday || tm->tm_mon != wanted.tm_mon ||
	    d.secs < 0)
		return false;
	*date = d;
	return true;
}

static bool take_clock(const char **s, struct tm *tm)
{
	if (!take_digits(s, 2, &tm->tm_hour) || !take_char(s, ':') ||
	    !take_digits(s, 2, &tm->tm_min) || !take_char(s, ':') ||
	    !take_digits(s, 2, &tm->tm_sec))
		return false;
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 61;
}

/* 2005-04-07T22:13:13+0200, 2005-04-07 22:13:13 */
static bool parse_iso(const char *s, struct gitdate *date)
{
	struct tm tm = { 0 };
	int year, month;

	if (!take_digits(&s, 4, &year) || !take_char(&s, '-') ||
	    !take_digits(&s, 2, &month) || !take_char(&s, '-') ||
	    !take_digits(&s, 2, &tm.tm_mday) ||
	    (!take_char(&s, 'T') && !take_char(&s, ' ')) ||
	    !take_clock(&s, &tm))
		return false;
	if (month < 1 || month > 12 || tm.tm_mday < 1)
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	return finish(&tm, s, date);
}

/* Thu, 07 Apr 2005 22:13:13 +0200 */
static bool parse_rfc(const char *s, struct gitdate *date)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const char *comma = strchr(s, ',');
	struct tm tm = { 0 };
	char name[4] = "";
	const char *month;
	int year;

	if (comma) {
		if (comma != s + 3)
			return false;
		s = comma + 1 + strspn(comma + 1, " ");
	}
	if (!take_digits(&s, s[0] && s[1] == ' ' ? 1 : 2, &tm.tm_mday) ||
	    !take_char(&s, ' ') || strlen(s) < 4)
		return false;
	memcpy(name, s, 3);
	s += 3;
	month = strstr(months, name);
	if (!month || (month - months) % 3 || !take_char(&s, ' ') ||
	    !take_digits(&s, 4, &year) || !take_char(&s, ' ') ||
	    !take_clock(&s, &tm))
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = (int)(month - months) / 3;
	return finish(&tm, s, date);
}

bool gitdate_parse(const char *s, struct gitdate *date)
{
	return parse_raw(s, date) || parse_iso(s, date) || parse_rfc(s, date);
}
