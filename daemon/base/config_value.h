/*
 * Values of git's configuration, read as git's config.c reads them. Pure
 * functions; any thread.
 */
#ifndef BASE_CONFIG_VALUE_H
#define BASE_CONFIG_VALUE_H

#include <stdbool.h>

/* git_parse_int(): any base that strtoimax() accepts, with the suffix k, m or
 * g. -1: not a number, or outside of an int, and *N is unchanged. */
int config_value_int(const char *value, int *n);
/* git_config_bool(). NULL, a key without "=", is true. -1: no boolean. */
int config_value_bool(const char *value, bool *yes);

#endif
