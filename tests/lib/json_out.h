/*
 * Writes JSON, member by member. A string is bytes: each byte becomes the
 * Unicode character with the same number (Latin-1), so all bytes can be
 * written.
 */
#ifndef TESTS_LIB_JSON_OUT_H
#define TESTS_LIB_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_out {
	FILE *f;
	unsigned depth;
	unsigned inline_from; /* 0: every member has its own line */
	bool has_before;      /* after a member of the same object */
};

/* KEY is NULL in an array, and for the outermost value. */
void json_bytes(struct json_out *j, const char *key, const void *data,
    size_t len);
void json_string(struct json_out *j, const char *key, const char *s);
void json_number(struct json_out *j, const char *key, uint64_t number);
void json_true(struct json_out *j, const char *key);
/* BRACKET: '{' or '['. The content of an inline object is on one line. */
void json_open(struct json_out *j, const char *key, char bracket);
void json_open_inline(struct json_out *j, const char *key, char bracket);
void json_close(struct json_out *j, char bracket);

#endif
