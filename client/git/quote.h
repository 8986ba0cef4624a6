/*
 * Strings with quotes, as in git's quote.c: those of C, which git uses for
 * names with unusual bytes, and those of a shell, for commands that a person
 * copies. Pure.
 */
#ifndef CLIENT_GIT_QUOTE_H
#define CLIENT_GIT_QUOTE_H

#include "proto/lib/cli.h"

/* S begins with a quote. Appends the content up to the closing quote. Returns
 * the place behind this quote, or NULL for a malformed string. */
const char *quote_read(const char *s, struct text *out);
/* Appends S as a word of a shell (proto/lib/shell_word.h). */
void quote_shell(const char *s, struct text *out);
/* The command of a shell that has WORD and the words up to NULL; owned. Root
 * may copy a path or a value of a repository from a message, so both must be
 * such words. */
char *quote_command(const char *word, ...) __attribute__((sentinel));

#endif
