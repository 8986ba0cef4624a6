/*
 * Parses and formats positions and times of history. One thread.
 */
#ifndef CLIENT_LOG_WHEN_H
#define CLIENT_LOG_WHEN_H

#include "proto/message.h"

/* A position of history, and its journal if it is known. */
struct when_position {
	bool has_journal;
	uint8_t journal[REFD_JOURNAL_ID_BYTES];
	struct refd_position at;
};

/* "[<journal>:]<lsn>[.<nr>]"; false for anything else. */
bool when_position(const char *s, struct when_position *p);
/* Parses a date as git does, in milliseconds since 1970, never 0. Runs git. A
 * wrong date ends the program. */
uint64_t when_time(const char *s);
/* Local time with milliseconds. */
const char *when_text(uint64_t ms, char buf[64]);
/* UTC with milliseconds: "2026-08-01T12:00:00.000Z". */
const char *when_utc(uint64_t ms, char buf[64]);
/* "3 minutes ago": the words and the limits of git. */
const char *when_relative(uint64_t ms, uint64_t now_ms, char buf[64]);

#endif
