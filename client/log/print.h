/*
 * One change of history on standard output. One thread; nothing is flushed.
 */
#ifndef CLIENT_LOG_PRINT_H
#define CLIENT_LOG_PRINT_H

#include "proto/message.h"

enum print_form {
	PRINT_LINES, /* for people: a line each, control bytes made visible */
	PRINT_NUL,   /* fields and changes ended by NUL and two NULs, as is */
	PRINT_JSON   /* an object a line */
};

void print_change(const struct refd_answer *ans, const struct refd_change *c,
    enum print_form form);
/* That some of it is gone. */
void print_gap(const struct refd_answer *ans, enum print_form form);

#endif
