/*
 * Growing arrays. Any thread; nothing blocks or logs.
 */
#ifndef PROTO_LIB_ARRAY_H
#define PROTO_LIB_ARRAY_H

#include <stdlib.h>

/* Makes room for another item in ITEMS, which holds NR items of EACH bytes and
 * has room for *SIZE. Returns the array, perhaps moved. NULL: out of memory,
 * and ITEMS is unchanged. */
static inline void *array_room(void *items, size_t nr, size_t *size,
    size_t each)
{
	size_t more = *size == 0 ? 2 : 2 * *size;
	void *grown;

	if (nr < *size)
		return items;
	grown = realloc(items, more * each);
	if (grown != NULL)
		*size = more;
	return grown;
}

#endif
