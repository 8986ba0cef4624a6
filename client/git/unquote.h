/*
 * Strings quoted as C has them, which is how git writes names with unusual
 * bytes (quote.c). Pure.
 */
#ifndef CLIENT_GIT_UNQUOTE_H
#define CLIENT_GIT_UNQUOTE_H

#include "client/base/cli.h"

/* S begins with a quote. Appends what stands between it and the next bare
 * one; returns what follows that, or NULL for a string that is malformed. */
const char *unquote(const char *s, struct text *out);

#endif
