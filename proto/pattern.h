/*
 * Matches patterns of refs (PROTOCOL.md, "History"). Pure functions; any
 * thread.
 */
#ifndef PROTO_PATTERN_H
#define PROTO_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* With "*" (any bytes) or "?" (one byte), a pattern matches a whole name. With
 * "/" at the end, a pattern matches the beginning of a name. Otherwise the
 * pattern is the name. The time is proportional to the length of the pattern
 * times the length of the name: some microseconds, for any number of stars. A
 * name longer than twice REFD_REFNAME_MAX is not a ref, so no pattern with "*"
 * or "?" matches the name. */
bool refd_pattern_matches(const char *pattern, const char *name);
/* Is PATTERN a name, without "*", "?" and final "/"? */
bool refd_pattern_is_name(const char *pattern);
/* Number of bytes before the first "*" or "?". All matching names begin with
 * these bytes. */
size_t refd_pattern_literal(const char *pattern);

#endif
