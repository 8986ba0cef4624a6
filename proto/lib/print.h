/*
 * Text from outside in output: paths, names of refs, messages of other
 * programs. Nothing is flushed.
 */
#ifndef PROTO_LIB_PRINT_H
#define PROTO_LIB_PRINT_H

#include <stdio.h>

/* For people. Control characters and invalid UTF-8 become "?". */
void print_visible(FILE *to, const char *s);
/* A JSON string with quotes. Invalid UTF-8 becomes U+FFFD. */
void print_json_string(FILE *to, const char *s);

#endif
