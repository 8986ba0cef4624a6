/*
 * Names that others chose, made fit for a log and a terminal: between double
 * quotes, with \" \\ \n \t and \xNN for what is not printable or no UTF-8. The
 * control characters beyond ASCII count as not printable.
 *
 * Pure; any thread.
 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stddef.h>

/* TO gets at most SIZE bytes, its NUL included, and is closed by a quote even
 * where it is cut. SIZE is at least 3. Returns TO. */
char *quote(char *to, size_t size, const char *s);

#endif
