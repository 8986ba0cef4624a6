/*
 * Text from outside in front of people: paths, names of refs, messages of other
 * programs. A terminal obeys control characters, and a name with directions of
 * writing looks like another name. So a text for people passes these functions,
 * which replace:
 *
 *	U+0000 to U+001F, U+007F to U+009F	controls, also as single bytes
 *	U+061C, U+200E, U+200F, U+202A to	directions of writing
 *	U+202E, U+2066 to U+2069
 *	U+2028, U+2029				other ends of a line
 *	bytes that are not UTF-8
 *
 * Other functions of stdio print nothing for people (scripts/check-layers).
 *
 * The caller owns the stream, which may block; nothing is flushed. One call is
 * one write to an unbuffered stream, up to PRINT_ROOM bytes.
 */
#ifndef PROTO_LIB_PRINT_H
#define PROTO_LIB_PRINT_H

#include <stddef.h>
#include <stdio.h>

#define PRINT_ROOM 4096

enum print_as {
	/* Newlines and tabs become blanks, all else becomes "?". */
	PRINT_AS_LINE,
	/* Newlines and tabs stay. */
	PRINT_AS_LINES,
	/* Inside double quotes, for a log: \" \\ \n \t, and \xNN for a byte. */
	PRINT_AS_QUOTED,
	/* Inside a string of JSON: \uNNNN, and U+FFFD for a byte that is not
	 * UTF-8. */
	PRINT_AS_JSON
};

/* Passes S, of LEN bytes, to PUT, character by character. */
void print_through(enum print_as as, const char *s, size_t len,
    void (*put)(void *to, const char *bytes, size_t len), void *to);
void print_text(FILE *to, enum print_as as, const char *s, size_t len);

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* PRINT_AS_LINE, and the end of the line. */
void print_line(FILE *to, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* PRINT_AS_LINE, a part of a line. */
void print_part(FILE *to, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* PRINT_AS_LINES; no newline is added. */
void print_lines(FILE *to, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* For programs: the bytes as they are. */
void print_bytes(FILE *to, const void *bytes, size_t len);

/* Writes S with quotes, PRINT_AS_QUOTED, to TO, at most SIZE bytes with NUL. A
 * cut is between characters, before the closing quote. SIZE is at least 3.
 * Returns TO. */
char *print_quoted(char *to, size_t size, const char *s);

#endif
