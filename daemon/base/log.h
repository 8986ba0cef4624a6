/*
 * The daemon's log: one line per event on standard error,
 *
 *	event=NAME key=value ... text="what it means, and what to do"
 *
 * Under journald a line begins with its priority (sd-daemon(3)), elsewhere with
 * the time and the level. Numbers and words of refd's own stand bare; all that
 * others chose is quoted (quote.h), so nothing can forge a line or a key. An
 * empty string is left out with its key.
 * refd-daemon(8) lists the events; test_log holds the two together.
 *
 * Any thread; a line is one write, which blocks if the reader is slow. Lines
 * are cut at LOG_LINE_MAX bytes. proto/, store/ and scheduler/ never call
 * these.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 2048

/* Finds out who reads (JOURNAL_STREAM). Before any thread is started. */
void log_init(void);

enum log_level {
	/* Something has failed for good, and what to do about it. */
	LOG_LEVEL_ERROR,
	/* Something is not as it should be; the daemon goes on. */
	LOG_LEVEL_WARNING,
	/* What an administrator wants to have read: start, stop, recovery.
	 * Never per request. */
	LOG_LEVEL_INFO
};

struct log_field {
	const char *key;
	const char *string; /* NULL: the number; "": nothing */
	int64_t number;
	bool is_word; /* the string is one of refd's own words */
};
#define LOG_STR(k, s)  { .key = (k), .string = (s) }
#define LOG_WORD(k, s) { .key = (k), .string = (s), .is_word = true }
#define LOG_NUM(k, n)  { .key = (k), .number = (int64_t)(n) }
#define LOG_TEXT(s)    LOG_STR("text", s)

/* What others can cause again and again: no more than BURST lines in SECONDS;
 * how many were left out is said with the next. A LIMIT of NULL is none. */
struct log_limit {
	unsigned burst, seconds;
	/* log.c's: */
	int64_t since_ms;
	unsigned nr;
	uint64_t suppressed;
};

/* FIELDS ends with one without a key. */
void log_put(struct log_limit *limit, enum log_level level, const char *event,
    const struct log_field *fields);
/* With at least one field. */
#define log_limited(limit, level, event, ...)                                  \
	log_put(limit, level, event,                                           \
	    (const struct log_field[]){ __VA_ARGS__, { .key = NULL } })
#define log_event(level, event, ...)                                           \
	log_limited(NULL, level, event, __VA_ARGS__)

/* How many of them there were. */
void log_counts(uint64_t *errors, uint64_t *warnings);

/* The last errors and warnings, for who asks what is wrong. */
#define LOG_KEPT     16
#define LOG_KEPT_MAX 512 /* bytes of each; longer ones are cut */
struct log_kept {
	int64_t wall_ms;
	bool is_error;
	char text[LOG_KEPT_MAX];
};
/* The newest first; returns how many. */
size_t log_recent(struct log_kept kept[LOG_KEPT]);

#endif
