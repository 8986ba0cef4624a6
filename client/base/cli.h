/*
 * What the commands of refd share: how they end, how they speak, and strings
 * that grow. One thread. Out of memory ends the program, so nothing here
 * returns NULL for want of it.
 */
#ifndef CLIENT_BASE_CLI_H
#define CLIENT_BASE_CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* git's exit codes, and sysexits.h's EX_TEMPFAIL: nothing was done, another
 * time it may work. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_AWAY = 75,
	EXIT_FATAL = 128,
	EXIT_USAGE = 129
};

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* "fatal: ...", "error: ...", "warning: ...", "refd: ..." on standard error,
 * a line each; control bytes become "?". say_fatal() returns. */
void die(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));
void die_with(int code, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((noreturn));
void say_fatal(const char *fmt, ...) PRINTF_LIKE(1, 2);
void say_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
void say_warning(const char *fmt, ...) PRINTF_LIKE(1, 2);
void say(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Writes standard output. A failure ends the program: without a message, by
 * SIGPIPE, if nobody reads any more; otherwise with EXIT_FATAL. */
void flush_output(void);

void *xrealloc(void *old, size_t size);
void *xcalloc(size_t nr, size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* A growing string, always terminated once anything was added.
 * Zero-initialised is empty; data is owned. */
struct text {
	char *data;
	size_t len, size;
};

void text_add(struct text *t, const void *data, size_t len);
void text_addc(struct text *t, char c);
void text_adds(struct text *t, const char *s);
void text_addf(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_clear(struct text *t);
void text_done(struct text *t);
/* Everything that FD has, appended. 0 or negative errno; -EFBIG: more than
 * MAX bytes. */
int text_read(struct text *t, int fd, size_t max);
/* The file PATH, appended. 0 or negative errno; -EINVAL: a FIFO, for which a
 * read could wait for ever. */
int text_read_file(struct text *t, const char *path);

/* A non-negative decimal number of at most MAX; false for anything else. */
bool parse_number(const char *s, uint64_t max, uint64_t *number);
bool has_prefix(const char *s, const char *prefix);
/* A string that is there twice, or NULL. Sorts NAMES. */
const char *find_duplicate(const char **names, size_t nr);

#endif
