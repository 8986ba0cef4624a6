/*
 * Prints one change of history to standard output. One thread; nothing is
 * flushed.
 */
#ifndef CLIENT_LOG_PRINT_H
#define CLIENT_LOG_PRINT_H

#include "proto/message.h"

enum print_form {
	PRINT_LINES, /* for people: a line per change, control bytes visible */
	PRINT_NUL,   /* fields end with NUL, changes with two NULs */
	PRINT_JSON   /* a JSON object per line */
};

void print_change(const struct refd_answer *ans, const struct refd_change *c,
    enum print_form form);
/* Reports that older history was removed. */
void print_gap(const struct refd_answer *ans, enum print_form form);

#endif
