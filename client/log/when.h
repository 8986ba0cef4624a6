/*
 * Parses and formats positions and times of history. One thread.
 */
#ifndef CLIENT_LOG_WHEN_H
#define CLIENT_LOG_WHEN_H

#include "proto/lib/cli.h"
#include "proto/message.h"

/* A position of history, and its journal if it is known. */
struct when_position {
	bool has_journal;
	uint8_t journal[REFD_JOURNAL_ID_BYTES];
	struct refd_position at;
};

/* "[<journal>:]<lsn>[.<nr>]", or false for anything else. */
bool when_position(const char *s, struct when_position *p);
/*
 * Parses a time: "@<seconds>", ISO 8601, "2 hours ago", "yesterday", "now".
 * git's own parser takes any text that has a known word, so a typing error
 * would select other changes. ISO 8601 without a zone is local time, and a time
 * that occurred twice is refused; a date alone is its beginning. Seconds may
 * have a fraction. *MS is since 1970, never 0. False, with a sentence in the
 * empty *WHY, for anything else.
 */
bool when_parse(const char *s, uint64_t *ms, struct text *why);
/* The same, and refuses the future. */
bool when_past(const char *s, uint64_t *ms, struct text *why);
/* "3 minutes ago": the words and the limits of git. */
const char *when_relative(uint64_t ms, uint64_t now_ms, char buf[64]);

#endif
