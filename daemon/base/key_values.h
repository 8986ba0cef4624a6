/*
 * A growing list of keys and values, the content of many answers. The list
 * remembers a lack of memory in FAILED, so that callers check once at the end.
 *
 * A table is told as rows of pairs. The keys of a row begin with the same word
 * and a period, and the first key of a row begins the next row: "lock.path",
 * "lock.age_ms", "lock.path", ...
 *
 * One thread at a time; nothing blocks.
 */
#ifndef BASE_KEY_VALUES_H
#define BASE_KEY_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* Empty if zero-initialised. */
struct key_values {
	struct refd_pair *list; /* keys and values are owned */
	size_t nr, room;
	bool failed; /* a pair is missing, because there was no memory */
};

/* Copies key and value, and cuts a value that does not fit one packet. */
void key_values_add(struct key_values *kv, const char *key, const char *value);
void key_values_addf(struct key_values *kv, const char *key, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
void key_values_add_number(struct key_values *kv, const char *key,
    uint64_t value);
/* Frees the content, after which the list is empty again. */
void key_values_done(struct key_values *kv);

#endif
