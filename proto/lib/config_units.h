/*
 * Durations and sizes of the configuration, which have a unit: "10ms", "5s",
 * "1 week", "2GiB". A bare 0 is allowed.
 *
 * Pure tables; any thread; nothing blocks.
 */
#ifndef PROTO_LIB_CONFIG_UNITS_H
#define PROTO_LIB_CONFIG_UNITS_H

#include <stdbool.h>
#include <stdint.h>

enum config_units {
	CONFIG_UNITS_TIME, /* in milliseconds */
	CONFIG_UNITS_SIZE  /* in bytes */
};

/* False, with *VALUE untouched, if TEXT is no number with a unit, or more than
 * fits. */
bool config_units_parse(enum config_units units, const char *text,
    uint64_t *value);
/* In the largest unit without a remainder. Owned by the caller, or NULL without
 * memory. */
char *config_units_text(enum config_units units, uint64_t value);
/* The forms to write, for a message. */
const char *config_units_forms(enum config_units units);

#endif
