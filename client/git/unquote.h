/*
 * Strings with C quotes, which git uses for names with unusual bytes (quote.c).
 * Pure.
 */
#ifndef CLIENT_GIT_UNQUOTE_H
#define CLIENT_GIT_UNQUOTE_H

#include "client/base/cli.h"

/* S begins with a quote. Appends the content up to the closing quote. Returns
 * the place behind this quote, or NULL for a malformed string. */
const char *unquote(const char *s, struct text *out);

#endif
