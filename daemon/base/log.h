/*
 * The daemon's log: one line per event on standard error,
 *
 *	event=NAME key=value ... text="what it means, and what to do"
 *
 * Under journald a line begins with its priority (sd-daemon(3)), elsewhere with
 * the time and the level. Numbers and words of refd have no quotes, and all
 * other text is quoted (print.h), so nobody can forge a line or a key. An empty
 * string is left out with its key. refd-daemon(8) lists the events, and
 * test_log compares both lists.
 *
 * Any thread; a line is one write, which blocks if the reader is slow, and is
 * cut at LOG_LINE_MAX bytes. proto/, store/ and scheduler/ never log.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 2048

/* Finds out, before any thread starts, whether journald reads
 * (JOURNAL_STREAM). */
void log_init(void);

enum log_level {
	/* A final failure, with advice. */
	LOG_LEVEL_ERROR,
	/* A problem with which the daemon goes on. */
	LOG_LEVEL_WARNING,
	/* Start, stop and recovery, but nothing for every request. */
	LOG_LEVEL_INFO
};

struct log_field {
	const char *key;
	const char *string; /* NULL: the number; "": nothing */
	int64_t number;
	bool is_word; /* the string is a word of refd */
};
#define LOG_STR(k, s)  { .key = (k), .string = (s) }
#define LOG_WORD(k, s) { .key = (k), .string = (s), .is_word = true }
#define LOG_NUM(k, n)  { .key = (k), .number = (int64_t)(n) }
#define LOG_TEXT(s)    LOG_STR("text", s)

/* A limit of BURST lines in SECONDS for events that clients can repeat. The
 * next line has the number of suppressed lines. */
struct log_limit {
	unsigned burst, seconds;
	/* Private to log.c. */
	int64_t since_ms;
	unsigned nr;
	uint64_t suppressed;
};

/* A field without a key ends FIELDS. LIMIT may be NULL. */
void log_put(struct log_limit *limit, enum log_level level, const char *event,
    const struct log_field *fields);
/* Needs at least one field. */
#define log_limited(limit, level, event, ...)                                  \
	log_put(limit, level, event,                                           \
	    (const struct log_field[]){ __VA_ARGS__, { .key = NULL } })
#define log_event(level, event, ...)                                           \
	log_limited(NULL, level, event, __VA_ARGS__)

/* The numbers of errors and warnings since the start. */
void log_counts(uint64_t *errors, uint64_t *warnings);

/* The last errors and warnings, for `refd status` and reports. */
#define LOG_KEPT     16
#define LOG_KEPT_MAX 512 /* bytes of a line; longer lines are cut */
struct log_kept {
	int64_t wall_ms;
	bool is_error;
	char text[LOG_KEPT_MAX];
};
/* Fills KEPT, the newest first, and returns the number of lines. */
size_t log_recent(struct log_kept kept[LOG_KEPT]);

#endif
