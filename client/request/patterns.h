/*
 * Patterns of refs from the command line (proto/pattern.h). Pure, but an error
 * ends the program; one thread.
 */
#ifndef CLIENT_REQUEST_PATTERNS_H
#define CLIENT_REQUEST_PATTERNS_H

#include <stddef.h>

#include "proto/limits.h"

/* Adds S, which is borrowed, to the NR patterns in LIST. A pattern that no ref
 * can match, such as "main", ends the program: the answer would be empty, which
 * looks like an answer. */
void patterns_add(const char *list[REFD_PATTERNS_MAX], size_t *nr,
    const char *s);

#endif
