/*
 * Common parts of the commands: exit statuses, messages, the command line, and
 * growing strings. One thread. Out of memory ends the program, so no function
 * here returns NULL for that reason.
 */
#ifndef PROTO_LIB_CLI_H
#define PROTO_LIB_CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/lib/colour.h"
#include "proto/lib/command.h"
#include "proto/lib/config_file.h"
#include "proto/lib/print.h"

/* The exit codes of git. EXIT_AWAY is EX_TEMPFAIL of sysexits.h: nothing was
 * done, and a later attempt may succeed. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_AWAY = 75,
	EXIT_FATAL = 128,
	EXIT_USAGE = 129
};

/* From now on, the messages are those of C. Before, refd's own prefix is used.
 */
void cli_start(const struct command *c);
/* Call before the first thread is started. From now on die() ends the program
 * without the handlers of exit(), because a library's handler frees memory that
 * another thread may use. Any thread. */
void cli_begin_threads(void);

/*
 * Writes a line to standard error (PRINT_AS_LINES). The line begins with
 * "refd: ", and a warning with "refd: warning: ". A command that is like
 * git has git's prefixes for all but notes.
 */
enum cli_kind { CLI_NOTE, CLI_WARNING, CLI_ERROR, CLI_FATAL };

void cli_say(enum cli_kind kind, const char *fmt, ...) PRINTF_LIKE(2, 3);
#define say(...)         cli_say(CLI_NOTE, __VA_ARGS__)
#define say_warning(...) cli_say(CLI_WARNING, __VA_ARGS__)
#define say_error(...)   cli_say(CLI_ERROR, __VA_ARGS__)
/* The program goes on. */
#define say_fatal(...) cli_say(CLI_FATAL, __VA_ARGS__)
void cli_die(int code, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((noreturn));
#define die(...) cli_die(EXIT_FATAL, __VA_ARGS__)
/* Flushes standard output. A failure ends the program, by SIGPIPE if the reader
 * is gone, otherwise with EXIT_FATAL. */
void cli_flush(void);

/*
 * Parses the command line of C into VALUES and returns the number of arguments,
 * which *ARGV then points to. Help and errors end the program; an error prints
 * the usage.
 */
int cli_parse(const struct command *c, void *values, int argc, char ***argv);
/* Ends the program with the usage of C. */
void cli_usage_exit(const struct command *c) __attribute__((noreturn));
/* An error in the command line that the declaration does not cover. */
#define cli_usage(c, ...) (say_error(__VA_ARGS__), cli_usage_exit(c))

void *xrealloc(void *old, size_t size);
void *xcalloc(size_t nr, size_t size);
/* array_room(), for an array that holds NR items of EACH bytes. */
void *xroom(void *items, size_t nr, size_t *size, size_t each);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* A growing string, which is empty when zero-initialised. DATA is owned, and
 * ends with a NUL once anything was added. */
struct text {
	char *data;
	size_t len, size;
	/* For a terminal: all that is added passes PRINT_AS_LINES, and only
	 * text_add_colour() adds colours. */
	bool is_shown;
};

void text_add(struct text *t, const void *data, size_t len);
void text_addc(struct text *t, char c);
void text_adds(struct text *t, const char *s);
void text_addf(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* PRINT_AS_LINE. */
void text_add_visible(struct text *t, const char *s);
/* Adds S in COLOUR, PRINT_AS_LINE. */
void text_add_colour(struct text *t, enum colour colour, const char *s);
/* Writes T to standard output, PRINT_AS_LINES, and then text_done(). */
void text_print(struct text *t);
void text_clear(struct text *t);
void text_done(struct text *t);
/* Appends all bytes of FD. 0 or negative errno; -EFBIG: more than MAX bytes. */
int text_read(struct text *t, int fd, size_t max);
/* Room for a file with one line, of the kernel or of a repository. */
#define SMALL_FILE_BYTES 8192

/* Appends the file PATH of the machine, for example of /proc. 0 or negative
 * errno; -EINVAL: not a regular file, so reading could block for ever or have
 * no end; -EFBIG: more than MAX bytes, of which nothing was read if the size of
 * the file says so. */
int text_read_file(struct text *t, const char *path, size_t max);
/* The same for a file that another user may have made, for example of a
 * repository. Root follows no link, because the mere opening of a device may
 * have an effect. */
int text_read_regular(struct text *t, const char *path, size_t max);
/* Reads the configuration PATH of a program, as config_file_parse(). 0, or
 * negative errno after FN or this function has added the reason to WHY. */
int text_read_config(const char *path, config_entry_fn *fn, void *arg,
    struct text *why);

/* A non-negative decimal number of at most MAX, or false for anything else. */
bool cli_number(const char *s, uint64_t max, uint64_t *number);
bool has_prefix(const char *s, const char *prefix);
/* A string that occurs twice, or NULL. */
const char *cli_duplicate(const char **names, size_t nr);

#endif
