#include "proto/lib/progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/lib/clock.h"
#include "proto/lib/print.h"

#define COLUMNS 79
#define WAIT_MS 1000

static struct {
	bool is_begun;
	int64_t ms;  /* of the last line, or of the first call */
	int columns; /* of the line that stands; 0: there is none */
} shown;

static void (*relay)(const char *line);

void progress_relay(void (*take)(const char *line))
{
	relay = take;
	shown.columns = 0;
}

static bool is_time(void)
{
	const int64_t now = clock_now_ms();

	if (!shown.is_begun)
		shown.ms = now;
	shown.is_begun = true;
	if (now - shown.ms < WAIT_MS)
		return false;
	shown.ms = now;
	return relay != NULL || isatty(STDERR_FILENO);
}

void progress_line(const char *text)
{
	char line[COLUMNS + 1];

	if (relay != NULL) {
		relay(text);
		return;
	}
	if (!isatty(STDERR_FILENO))
		return;
	snprintf(line, sizeof(line), "%s", text);
	progress_clear();
	print_part(stderr, "%s", line);
	fflush(stderr);
	shown.columns = (int)strlen(line);
}

void progress_show(const char *title, uint64_t done, uint64_t total,
    const char *place, const char *name)
{
	char line[COLUMNS + 1], count[64];

	if (!is_time())
		return;
	if (total > 0)
		snprintf(count, sizeof(count),
		    "%3" PRIu64 "%% (%" PRIu64 "/%" PRIu64 ")",
		    (uint64_t)(100.0 * (double)done / (double)total), done,
		    total);
	else
		snprintf(count, sizeof(count), "%" PRIu64, done);
	snprintf(line, sizeof(line), "%s: %s%s%s%s%s", title, count,
	    *place || *name ? ", " : "", place, *place && *name ? " " : "",
	    name);
	progress_line(line);
}

void progress_clear(void)
{
	if (shown.columns > 0) {
		print_bytes(stderr, "\r", 1);
		print_part(stderr, "%*s", shown.columns, "");
		print_bytes(stderr, "\r", 1);
		fflush(stderr);
	}
	shown.columns = 0;
}
