#include "client/admin/show.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "proto/utf8.h"

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

void show_age(struct text *t, uint64_t seconds)
{
	if (seconds < 120)
		text_addf(t, "%" PRIu64 " s", seconds);
	else if (seconds < 120 * 60)
		text_addf(t, "%" PRIu64 " min", seconds / 60);
	else if (seconds < 86400)
		text_addf(t, "%" PRIu64 " h", seconds / 3600);
	else
		show_count(t, seconds / 86400, "day", "days");
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

void show_when(struct text *t, uint64_t ms, uint64_t now_ms)
{
	if (!isatty(STDOUT_FILENO)) {
		show_moment(t, ms);
		return;
	}
	show_age(t, now_ms > ms ? (now_ms - ms) / 1000 : 0);
	text_adds(t, " ago");
}

int show_when_width(void)
{
	return isatty(STDOUT_FILENO) ? 11 : 20;
}

void show_end(struct text *t, const char *name, size_t width)
{
	size_t columns = utf8_width(name);

	if (columns > width && width > 3) {
		text_adds(t, "...");
		name += utf8_skip(name, columns - (width - 3));
		columns = width;
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

static void add_grouped(struct text *t, uint64_t nr)
{
	if (nr >= 1000) {
		add_grouped(t, nr / 1000);
		text_addf(t, ",%03" PRIu64, nr % 1000);
	} else {
		text_addf(t, "%" PRIu64, nr);
	}
}

void show_count(struct text *t, uint64_t nr, const char *one, const char *many)
{
	add_grouped(t, nr);
	text_addf(t, " %s", nr == 1 ? one : many);
}

void show_pairs(struct text *t, const struct refd_answer *ans)
{
	size_t i;

	for (i = 0; i < ans->nr_pairs; i++) {
		if (strchr(ans->pairs[i].key, '.'))
			continue;
		text_addf(t, "%s: ", ans->pairs[i].key);
		text_add_visible(t, ans->pairs[i].value);
		text_addc(t, '\n');
	}
}

void show_cut(struct text *t, size_t begin, size_t columns, enum colour colour)
{
	char *line = xstrdup(t->data + begin);

	if (columns)
		line[utf8_skip(line, columns)] = '\0';
	t->len = begin;
	text_add_colour(t, colour, line);
	text_addc(t, '\n');
	free(line);
}

/* The bytes of S that fit into COLUMNS columns, up to the end of a word, but at
 * least one word. */
static size_t line_len(const char *s, size_t columns)
{
	size_t len = utf8_skip(s, columns), end = len;

	if (!s[len])
		return len;
	while (end > 0 && s[end] != ' ')
		end--;
	return end ? end : strcspn(s + 1, " ") + 1;
}

void show_lines(struct text *t, enum colour colour, const char *s,
    size_t indent, size_t columns)
{
	size_t room = columns > indent ? columns - indent : 1, len;
	char *line;

	for (; *s; s += len + strspn(s + len, " ")) {
		len = columns ? line_len(s, room) : strlen(s);
		line = xasprintf("%.*s", (int)len, s);
		text_addf(t, "%*s", (int)indent, "");
		text_add_colour(t, colour, line);
		text_addc(t, '\n');
		free(line);
	}
}

size_t show_columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
