/*
 * Makes foreign names safe for a log and a terminal: between double quotes,
 * with \" \\ \n \t, and \xNN for bytes that are not printable or not UTF-8.
 * Control characters outside of ASCII count as not printable.
 *
 * Pure; any thread.
 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stddef.h>

/* Writes at most SIZE bytes to TO, with NUL. The closing quote is always there,
 * even if the text is cut. SIZE is at least 3. Returns TO. */
char *quote(char *to, size_t size, const char *s);

#endif
