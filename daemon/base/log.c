#include "daemon/base/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static struct log_kept kept_lines[LOG_KEPT]; /* a ring */
static uint64_t nr_errors, nr_warnings;

static void keep(const struct level *level, const char *text, size_t len)
{
	struct log_kept *line;

	if (level == &info)
		return;
	if (len > LOG_KEPT_MAX - 1)
		len = LOG_KEPT_MAX - 1;
	pthread_mutex_lock(&keeping);
	line = &kept_lines[(nr_errors + nr_warnings) % LOG_KEPT];
	line->wall_ms = SYS(&sys_kernel, now_wall) / 1000000;
	line->is_error = level == &error;
	memcpy(line->text, text, len);
	line->text[len] = '\0';
	if (line->is_error)
		nr_errors++;
	else
		nr_warnings++;
	pthread_mutex_unlock(&keeping);
}

void log_counts(uint64_t *errors, uint64_t *warnings)
{
	pthread_mutex_lock(&keeping);
	*errors = nr_errors;
	*warnings = nr_warnings;
	pthread_mutex_unlock(&keeping);
}

size_t log_recent(struct log_kept kept[LOG_KEPT])
{
	uint64_t nr;
	size_t i;

	pthread_mutex_lock(&keeping);
	nr = nr_errors + nr_warnings;
	for (i = 0; i < LOG_KEPT && i < nr; i++)
		kept[i] = kept_lines[(nr - 1 - i) % LOG_KEPT];
	pthread_mutex_unlock(&keeping);
	return i;
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
		unsigned char c = (unsigned char)line[i];

		/* U+0080 to U+009F are obeyed by some terminals, too. */
		if (c == 0xc2 && i + 1 < len &&
		    ((unsigned char)line[i + 1] & 0xe0) == 0x80)
			line[i] = line[i + 1] = '?';
		else if (c < ' ' || c == 0x7f)
			line[i] = '?';
	}
	keep(level, line + head, len - head);
	line[len] = '\n';
	/* Nobody is left to be told that the log can't be written. */
	SYS(&sys_kernel, write_all, LOG_FD, line, len + 1);
}

static void __attribute__((format(printf, 2, 3)))
put_textf(const struct level *level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(level, fmt, ap);
	va_end(ap);
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

/* False: not this one. *SUPPRESSED: so many before it. */
static bool may_say(struct log_limit *limit, uint64_t *suppressed)
{
	int64_t now_ms = SYS(&sys_kernel, now_mono) / 1000000;
	bool may;

	*suppressed = 0;
	if (limit == NULL)
		return true;
	pthread_mutex_lock(&keeping);
	if (limit->nr == 0 ||
	    now_ms - limit->since_ms >= (int64_t)limit->seconds * 1000) {
		limit->since_ms = now_ms;
		limit->nr = 0;
	}
	may = limit->nr < limit->burst;
	if (may)
		limit->nr++;
	else
		limit->suppressed++;
	*suppressed = limit->suppressed;
	if (may)
		limit->suppressed = 0;
	pthread_mutex_unlock(&keeping);
	return may;
}

void log_limited(struct log_limit *limit, enum log_level level, const char *fmt,
    ...)
{
	static const struct level *const levels[] = { &error, &warning, &info };
	char text[LOG_LINE_MAX];
	uint64_t suppressed;
	va_list ap;

	if (!may_say(limit, &suppressed))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (suppressed > 0)
		put_textf(levels[level], "%s suppressed=%" PRIu64, text,
		    suppressed);
	else
		put_textf(levels[level], "%s", text);
}
