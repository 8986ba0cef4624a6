/*
 * The daemon's log: one line per event on standard error. Under journald a
 * line begins with its priority (sd-daemon(3)), elsewhere with the time. What
 * the text quotes can't forge a line: control bytes become '?'. What an event is
 * about stands as key=value, and names that others chose go through quote().
 *
 * Any thread; a line is one write, which blocks if the reader is slow. Lines
 * are cut at LOG_LINE_MAX bytes. proto/, store/ and engine/ never call these.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 2048

/* Finds out who reads (JOURNAL_STREAM). Before any thread is started. */
void log_init(void);

/* Something has failed for good, and what to do about it. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Something is not as it should be; the daemon goes on. */
void log_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What an administrator wants to have read: start, stop, recovery. Never per
 * request. */
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What others can cause again and again: no more than BURST lines in SECONDS;
 * how many were left out is said with the next. A LIMIT of NULL is none. */
struct log_limit {
	unsigned burst, seconds;
	/* log.c's: */
	int64_t since_ms;
	unsigned nr;
	uint64_t suppressed;
};
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO };
void log_limited(struct log_limit *limit, enum log_level level, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* How many of them there were. */
void log_counts(uint64_t *errors, uint64_t *warnings);

/* The last errors and warnings, for who asks what is wrong. */
#define LOG_KEPT     16
#define LOG_KEPT_MAX 400 /* bytes of each; longer ones are cut */
struct log_kept {
	int64_t wall_ms;
	bool is_error;
	char text[LOG_KEPT_MAX];
};
/* The newest first; returns how many. */
size_t log_recent(struct log_kept kept[LOG_KEPT]);

#endif
