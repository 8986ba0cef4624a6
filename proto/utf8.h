/*
 * The one way to cut UTF-8 into characters. A byte outside of a valid sequence
 * counts as a character of its own, so a cut never fails. Pure; any thread.
 */
#ifndef PROTO_UTF8_H
#define PROTO_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the sequence at S, which has LEN > 0 bytes, and its *CODE. 0: S
 * does not begin with valid UTF-8. */
size_t utf8_decode(const char *s, size_t len, uint32_t *code);
/* The number of characters in S. */
size_t utf8_width(const char *s);
/* The bytes of the first NR characters of S. */
size_t utf8_skip(const char *s, size_t nr);
/* The bytes of the longest beginning of S that has at most MAX bytes and ends
 * between two characters. */
size_t utf8_cut(const char *s, size_t max);

#endif
