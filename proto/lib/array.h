/*
 * Growing arrays, and sets of numbers. Any thread; nothing blocks or logs.
 */
#ifndef PROTO_LIB_ARRAY_H
#define PROTO_LIB_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
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

static inline int array_compare_u64(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

static inline void array_sort_u64(uint64_t *items, size_t nr)
{
	if (nr > 0)
		qsort(items, nr, sizeof(*items), array_compare_u64);
}

/* Is ITEM among the NR sorted ITEMS? */
static inline bool array_has_u64(const uint64_t *items, size_t nr,
    uint64_t item)
{
	return nr > 0 &&
	    bsearch(&item, items, nr, sizeof(item), array_compare_u64) != NULL;
}

#endif
