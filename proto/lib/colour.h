/*
 * Colour of standard output. With --color=auto, the default, standard output
 * has colour if it is a terminal, TERM is neither unset nor "dumb", and
 * NO_COLOR is unset or empty (https://no-color.org). One thread.
 */
#ifndef PROTO_LIB_COLOUR_H
#define PROTO_LIB_COLOUR_H

#include <stdbool.h>
#include <stdio.h>

#include "proto/lib/command.h"

/* X(meaning, sequence), with the sequences of git's own output. */
#define COLOUR_TABLE(X)                                                        \
	X(PLAIN, "")                                                           \
	X(HEADING, "\033[1m")  /* of columns and sections */                   \
	X(OID, "\033[33m")     /* an object, as in git log */                  \
	X(REF, "\033[36m")     /* the name of a ref or a repository */         \
	X(OK, "\033[32m")      /* serving, succeeded, created */               \
	X(WARNING, "\033[33m") /* will fail later */                           \
	X(ERROR, "\033[1;31m") /* fails now */                                 \
	X(DIM, "\033[2m")      /* details */

enum colour {
#define X(meaning, sequence) COLOUR_##meaning,
	COLOUR_TABLE(X)
#undef X
};

/* A row of a table of options: --color=WHEN. The value is kept here. */
#define COLOUR_OPTION                                                          \
	{ OPTION_TAKE("color", 0, "WHEN",                                      \
	    "colour: always, never, or auto (a terminal)", colour_take) }
const char *colour_take(void *values, const char *arg);

bool colour_is_on(void);
/* The sequence that begins COLOUR, and the sequence that ends every colour.
 * Without colour, and for COLOUR_PLAIN, both are "". */
const char *colour_begin(enum colour colour);
const char *colour_end(enum colour colour);
/* Prints S in COLOUR, as a part of a line (print.h). */
void colour_print(FILE *to, enum colour colour, const char *s);

#endif
