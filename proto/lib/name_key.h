/*
 * Names with numbers beside them, for sorting. Any thread.
 *
 * The number has the first bytes behind the common beginning of all names, so
 * it decides most comparisons without a look at the names.
 */
#ifndef PROTO_LIB_NAME_KEY_H
#define PROTO_LIB_NAME_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct name_key {
	const char *name; /* borrowed */
	uint64_t bytes;
};

/* The length of the common beginning of A and B, at most MOST. */
static inline size_t name_key_common(const char *a, const char *b, size_t most)
{
	size_t i = 0;

	while (i < most && a[i] != '\0' && a[i] == b[i])
		i++;
	return i;
}

/* The first COMMON bytes are equal in all names. */
static inline void name_key_set(struct name_key *k, const char *name,
    size_t common)
{
	const char *at = name + common;
	unsigned i;

	k->name = name;
	k->bytes = 0;
	for (i = 0; i < sizeof(k->bytes); i++) {
		k->bytes = k->bytes << 8 | (unsigned char)*at;
		at += *at != '\0';
	}
}

static inline int name_key_compare(const struct name_key *a,
    const struct name_key *b)
{
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

#endif
