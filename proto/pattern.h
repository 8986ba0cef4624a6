/*
 * Which refs a pattern means (PROTOCOL.md, "History"). Pure functions; any
 * thread.
 */
#ifndef PROTO_PATTERN_H
#define PROTO_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* A name; with "/" at its end the beginning of names; with "*" (any bytes)
 * or "?" (one byte) in it a whole name. Takes time for each byte of the
 * pattern and 64 bytes of the name: some microseconds, whatever stars there
 * are. A name of more than twice REFD_REFNAME_MAX is no ref's and matches
 * nothing that has "*" or "?". */
bool refd_pattern_matches(const char *pattern, const char *name);
/* Is it one name, spelled out? */
bool refd_pattern_is_name(const char *pattern);
/* How many of its bytes all that it means begins with. */
size_t refd_pattern_literal(const char *pattern);

#endif
