/*
 * Prints changes of history to standard output. One thread; nothing is
 * flushed.
 */
#ifndef CLIENT_LOG_PRINT_H
#define CLIENT_LOG_PRINT_H

#include "client/log/lines.h"
#include "proto/message.h"

enum print_form {
	PRINT_LINES, /* for people */
	PRINT_NUL,   /* fields end with NUL, changes with two NULs */
	PRINT_JSON   /* a JSON object per line */
};

/* Prints the changes of ANS, and before them a report if older changes were
 * removed. LINES is for PRINT_LINES. */
void print_changes(const struct refd_answer *ans, enum print_form form,
    struct lines *lines);

#endif
