/*
 * Renders the answer to REFD_VERB_STATUS for people: a sentence about the
 * state, each problem with its remedy, and the load. Pure; one thread.
 */
#ifndef CLIENT_ADMIN_SUMMARY_H
#define CLIENT_ADMIN_SUMMARY_H

#include "proto/lib/cli.h"
#include "proto/message.h"

/* Takes a line, which is borrowed and may have any bytes. A line BELOW belongs
 * to the line before: a cause, a remedy, a line of the log. */
typedef void summary_line_fn(void *arg, enum colour colour, bool is_below,
    const char *line);
/* NOW_MS is the wall clock, for the ages of log lines. */
void summary_each(const struct refd_answer *ans, uint64_t now_ms,
    summary_line_fn *put, void *arg);
/* The same as text. COLUMNS is the width of the terminal, or 0 if lines are not
 * wrapped. */
void summary_render(const struct refd_answer *ans, uint64_t now_ms,
    size_t columns, struct text *t);

#endif
