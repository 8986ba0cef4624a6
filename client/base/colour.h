/* Colour in a text: proto/lib/colour.h. One thread. */
#ifndef CLIENT_BASE_COLOUR_H
#define CLIENT_BASE_COLOUR_H

#include "proto/lib/cli.h"
#include "proto/lib/colour.h"

/* Adds S in COLOUR, PRINT_AS_LINE. */
void colour_add(struct text *t, enum colour colour, const char *s);

#endif
