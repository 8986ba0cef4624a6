/*
 * The daemon's log: one line per event on standard error. Under journald a
 * line begins with its priority (sd-daemon(3)), elsewhere with the time. What
 * the text quotes can't forge a line: control bytes become '?'.
 *
 * Any thread; a line is one write, which blocks if the reader is slow. Lines
 * are cut at LOG_LINE_MAX bytes. proto/, store/ and engine/ never call these.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

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

#endif
