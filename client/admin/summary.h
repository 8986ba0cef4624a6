/*
 * Renders the answer to REFD_VERB_STATUS for people: a sentence about the
 * state, each problem with its remedy, and the load. Pure; one thread.
 */
#ifndef CLIENT_ADMIN_SUMMARY_H
#define CLIENT_ADMIN_SUMMARY_H

#include "proto/lib/cli.h"
#include "proto/message.h"

/* NOW_MS is the wall clock, for the ages of log lines. COLUMNS is the width of
 * the terminal, or 0 if lines are not wrapped. */
void summary_render(const struct refd_answer *ans, uint64_t now_ms,
    size_t columns, struct text *t);

#endif
