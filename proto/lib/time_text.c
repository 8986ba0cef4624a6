#include "proto/lib/time_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* Times have milliseconds. ZONE is a format of strftime(3). */
static const char *spell(const struct tm *tm, uint64_t ms, const char *zone,
    char text[TIME_TEXT_MAX])
{
	size_t len = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", tm);

	len += (size_t)snprintf(text + len, TIME_TEXT_MAX - len, ".%03u",
	    (unsigned)(ms % 1000));
	strftime(text + len, TIME_TEXT_MAX - len, zone, tm);
	return text;
}

const char *time_text_local(uint64_t ms, char text[TIME_TEXT_MAX])
{
	time_t secs = (time_t)(ms / 1000);
	struct tm tm;

	return localtime_r(&secs, &tm) ? spell(&tm, ms, "%z", text) : "?";
}

const char *time_text_utc(uint64_t ms, char text[TIME_TEXT_MAX])
{
	time_t secs = (time_t)(ms / 1000);
	struct tm tm;

	return gmtime_r(&secs, &tm) ? spell(&tm, ms, "Z", text) : "?";
}

const char *time_text_age(int64_t seconds, char text[TIME_TEXT_MAX])
{
	int64_t minutes = seconds / 60;

	if (minutes < 120)
		snprintf(text, TIME_TEXT_MAX, "%" PRId64 " minutes", minutes);
	else if (minutes < 2880)
		snprintf(text, TIME_TEXT_MAX, "%" PRId64 " hours",
		    minutes / 60);
	else
		snprintf(text, TIME_TEXT_MAX, "%" PRId64 " days",
		    minutes / 1440);
	return text;
}
