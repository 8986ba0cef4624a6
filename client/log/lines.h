/*
 * Changes for people. On a terminal: a table that fits, with a heading. In a
 * pipe or file: a line per change of seven fields, separated by tabs, with full
 * names and values, for grep and cut. Control characters and tabs in names
 * become "?". One thread; nothing is flushed.
 */
#ifndef CLIENT_LOG_LINES_H
#define CLIENT_LOG_LINES_H

#include "client/log/columns.h"
#include "proto/message.h"

#define LINES_FIELDS 7 /* of a line in a pipe */

struct lines {
	bool is_table;          /* for a terminal */
	bool is_relative;       /* times, as "3 minutes ago" */
	bool is_verbose;        /* all facts below a change */
	bool has_repo;          /* a table has the column of the repository */
	struct columns columns; /* .width is set for a table */
};

/* Appends the changes of ANS. NOW_MS: since 1970. */
void lines_add(struct lines *l, const struct refd_answer *ans, uint64_t now_ms,
    struct text *out);

#endif
