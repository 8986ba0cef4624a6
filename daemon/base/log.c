#include "daemon/base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/mutex.h"
#include "daemon/base/sys.h"
#include "proto/lib/print.h"

#define LOG_FD 2

/* The limit for one value in a line. */
#define VALUE_MAX 1024

static const struct {
	const char *journal, *word;
} levels[] = {
	[LOG_LEVEL_ERROR] = { "<3>", "error" },
	[LOG_LEVEL_WARNING] = { "<4>", "warning" },
	[LOG_LEVEL_INFO] = { "<6>", "info" },
};

static bool for_journal;

/* JOURNAL_STREAM is "DEV:INO" of the stream that journald reads
 * (systemd.exec(5)). A process inherits the variable even if its standard error
 * leads elsewhere, so the variable is compared with standard error. */
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

static size_t put_head(char *line, size_t size, enum log_level level)
{
	int64_t now_ms = SYS(&sys_kernel, now_wall) / 1000000;
	time_t now_s = (time_t)(now_ms / 1000);
	struct tm tm;
	size_t len;

	if (for_journal)
		return (
		    size_t)snprintf(line, size, "%s", levels[level].journal);
	len = strftime(line, size, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now_s, &tm));
	return len +
	    (size_t)snprintf(line + len, size - len,
		".%03dZ %s: ", (int)(now_ms % 1000), levels[level].word);
}

static struct mutex keeping = MUTEX_INIT(MUTEX_LAST);
static struct log_kept kept_lines[LOG_KEPT]; /* a ring */
static uint64_t nr_errors, nr_warnings;

static void keep(enum log_level level, const char *text, size_t len)
{
	struct log_kept *line;

	if (level == LOG_LEVEL_INFO)
		return;
	if (len > LOG_KEPT_MAX - 1)
		len = LOG_KEPT_MAX - 1;
	mutex_lock(&keeping);
	line = &kept_lines[(nr_errors + nr_warnings) % LOG_KEPT];
	line->wall_ms = SYS(&sys_kernel, now_wall) / 1000000;
	line->is_error = level == LOG_LEVEL_ERROR;
	memcpy(line->text, text, len);
	line->text[len] = '\0';
	if (line->is_error)
		nr_errors++;
	else
		nr_warnings++;
	mutex_unlock(&keeping);
}

void log_counts(uint64_t *errors, uint64_t *warnings)
{
	mutex_lock(&keeping);
	*errors = nr_errors;
	*warnings = nr_warnings;
	mutex_unlock(&keeping);
}

size_t log_recent(struct log_kept kept[LOG_KEPT])
{
	uint64_t nr;
	size_t i;

	mutex_lock(&keeping);
	nr = nr_errors + nr_warnings;
	for (i = 0; i < LOG_KEPT && i < nr; i++)
		kept[i] = kept_lines[(nr - 1 - i) % LOG_KEPT];
	mutex_unlock(&keeping);
	return i;
}

struct log_line {
	char text[LOG_LINE_MAX];
	size_t len; /* always less */
};

static void __attribute__((format(printf, 2, 3))) add(struct log_line *line,
    const char *fmt, ...)
{
	size_t room = sizeof(line->text) - line->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line->text + line->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		line->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_field(struct log_line *line, const struct log_field *f)
{
	char value[VALUE_MAX];

	if (f->string == NULL)
		add(line, " %s=%" PRId64, f->key, f->number);
	else if (f->string[0] != '\0')
		add(line, " %s=%s", f->key,
		    f->is_word ? f->string :
				 print_quoted(value, sizeof(value), f->string));
}

/* False: the line is left out. *SUPPRESSED: lines left out before. */
static bool may_say(struct log_limit *limit, uint64_t *suppressed)
{
	int64_t now_ms = SYS(&sys_kernel, now_mono) / 1000000;
	bool may;

	*suppressed = 0;
	if (limit == NULL)
		return true;
	mutex_lock(&keeping);
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
	mutex_unlock(&keeping);
	return may;
}

void log_put(struct log_limit *limit, enum log_level level, const char *event,
    const struct log_field *fields)
{
	uint64_t suppressed;
	struct log_line line;
	size_t head;

	if (!may_say(limit, &suppressed))
		return;
	head = line.len = put_head(line.text, sizeof(line.text), level);
	add(&line, "event=%s", event);
	if (suppressed > 0)
		add(&line, " suppressed=%" PRIu64, suppressed);
	for (; fields->key != NULL; fields++)
		add_field(&line, fields);
	keep(level, line.text + head, line.len - head);
	line.text[line.len] = '\n';
	/* A failure to write the log cannot be reported anywhere. */
	SYS(&sys_kernel, write_all, LOG_FD, line.text, line.len + 1);
}
