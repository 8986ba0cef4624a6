/*
 * Which refs a pattern means (PROTOCOL.md, "History"). Pure functions; any
 * thread.
 */
#ifndef PROTO_PATTERN_H
#define PROTO_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* A name; with "/" at its end the beginning of names; with "*" (any bytes)
 * or "?" (one byte) in it a whole name. Takes at most the product of both
 * lengths. */
bool refd_pattern_matches(const char *pattern, const char *name);
/* Is it one name, spelled out? */
bool refd_pattern_is_name(const char *pattern);
/* How many of its bytes all that it means begins with. */
size_t refd_pattern_literal(const char *pattern);

#endif
