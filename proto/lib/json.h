/*
 * Writes JSON to a stream, without blanks. A string may have any bytes, as
 * PRINT_AS_JSON in proto/lib/print.h replaces those that are not UTF-8.
 *
 * One owner; may block as the stream does. The caller checks the stream.
 */
#ifndef PROTO_LIB_JSON_H
#define PROTO_LIB_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *to;
	bool has_item; /* in the innermost object or array */
};

/* KEY is NULL for an item of an array, and for the outermost value. */
void json_begin(struct json *j, const char *key, char bracket);
void json_end(struct json *j, char bracket);
/* Ends the outermost value, and the line. */
void json_finish(struct json *j, char bracket);
/* A NULL string is left out. If S is not UTF-8, the item KEY_hex follows, with
 * its bytes in hexadecimal digits. */
void json_text(struct json *j, const char *key, const char *s);
void json_count(struct json *j, const char *key, uint64_t n);
void json_flag(struct json *j, const char *key, bool flag);
/* TEXT is a JSON value. */
void json_value(struct json *j, const char *key, const char *text);

#endif
