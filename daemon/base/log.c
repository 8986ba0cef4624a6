#include "daemon/base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/base/sys.h"

#define LOG_FD 2

struct level {
	const char *journal, *word;
};

static const struct level error = { "<3>", "error" };
static const struct level warning = { "<4>", "warning" };
static const struct level info = { "<6>", "info" };

static bool for_journal;

/* systemd.exec(5): "DEV:INO" of the stream that journald reads, inherited
 * even by those whose standard error leads elsewhere. */
void log_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct sys_stat st;

	for_journal = stream != NULL &&
	    sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	    SYS(&sys_kernel, fstat, LOG_FD, &st) == 0 && st.dev == dev &&
	    st.ino == ino;
}

static size_t put_head(char *line, size_t size, const struct level *level)
{
	int64_t now_ms = SYS(&sys_kernel, now_wall) / 1000000;
	time_t now_s = (time_t)(now_ms / 1000);
	struct tm tm;
	size_t len;

	if (for_journal)
		return (size_t)snprintf(line, size, "%s", level->journal);
	len = strftime(line, size, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now_s, &tm));
	return len +
	    (size_t)snprintf(line + len, size - len,
		".%03dZ %s: ", (int)(now_ms % 1000), level->word);
}

static void __attribute__((format(printf, 2, 0)))
put_line(const struct level *level, const char *fmt, va_list ap)
{
	char line[LOG_LINE_MAX];
	size_t head = put_head(line, sizeof(line), level), len, i;
	int n = vsnprintf(line + head, sizeof(line) - head, fmt, ap);

	if (n < 0)
		return;
	len = head + (size_t)n;
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	for (i = head; i < len; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	}
	line[len] = '\n';
	/* Nobody is left to be told that the log can't be written. */
	SYS(&sys_kernel, write_all, LOG_FD, line, len + 1);
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(&error, fmt, ap);
	va_end(ap);
}

void log_warning(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(&warning, fmt, ap);
	va_end(ap);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(&info, fmt, ap);
	va_end(ap);
}
