#include "client/admin/show.h"

#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <time.h>

void show_time(struct text *t, uint64_t us)
{
	if (us < 1000)
		text_addf(t, "%" PRIu64 " us", us);
	else if (us < 1000000)
		text_addf(t, "%" PRIu64 ".%" PRIu64 " ms", us / 1000,
		    us / 100 % 10);
	else if (us < 300 * 1000000ULL)
		text_addf(t, "%" PRIu64 ".%" PRIu64 " s", us / 1000000,
		    us / 100000 % 10);
	else
		show_span(t, us / 1000000);
}

void show_span(struct text *t, uint64_t seconds)
{
	uint64_t days = seconds / 86400, hours = seconds / 3600 % 24;
	uint64_t minutes = seconds / 60 % 60, rest = seconds % 60;

	if (days > 0)
		text_addf(t,
		    "%" PRIu64 "d %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, days,
		    hours, minutes, rest);
	else if (hours > 0)
		text_addf(t, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, hours,
		    minutes, rest);
	else if (minutes > 0)
		text_addf(t, "%" PRIu64 ":%02" PRIu64, minutes, rest);
	else
		text_addf(t, "%" PRIu64 " s", rest);
}

void show_moment(struct text *t, uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	char buf[40] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(buf, sizeof(buf), "%Y-%m-%dT%H:%M:%SZ", &tm);
	text_adds(t, buf);
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

void show_end(struct text *t, const char *name, size_t width)
{
	size_t columns = 0;
	const char *s;

	for (s = name; *s; s++)
		columns += !continues(*s);
	if (columns > width && width > 3) {
		text_adds(t, "...");
		for (; columns > width - 3; columns--)
			do
				name++;
			while (continues(*name));
		columns += 3;
	}
	text_add_visible(t, name);
	for (; columns < width; columns++)
		text_addc(t, ' ');
}

void show_user(struct text *t, uint64_t uid)
{
	const struct passwd *pw = getpwuid((uid_t)uid);

	if (pw)
		text_add_visible(t, pw->pw_name);
	else
		text_addf(t, "%" PRIu64, uid);
}

void show_rate(struct text *t, uint64_t nr, uint64_t ms)
{
	uint64_t tenths = ms ? nr * 10000 / ms : 0;

	text_addf(t, "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
}
