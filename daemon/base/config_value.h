/*
 * Values of git's configuration, read as git's config.c reads them. Pure
 * functions; any thread.
 */
#ifndef BASE_CONFIG_VALUE_H
#define BASE_CONFIG_VALUE_H

#include <stdbool.h>

/* As git_parse_int(), in any base that strtoimax() accepts, with the suffix k,
 * m or g. -1: not a number, or outside of an int, and *N is unchanged. */
int config_value_int(const char *value, int *n);
/* As git_config_bool(), which takes NULL, a key without "=", for true. -1: no
 * boolean. */
int config_value_bool(const char *value, bool *yes);

#endif
