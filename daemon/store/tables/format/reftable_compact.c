#include "daemon/store/tables/format/reftable_compact.h"

#define FACTOR 2

/* Is A less than FACTOR times B? */
static bool is_small(uint64_t a, uint64_t b)
{
	return a / FACTOR < b;
}

bool reftable_compact_plan(const uint64_t *sizes, size_t nr, size_t *first,
    size_t *end)
{
	size_t i = nr;
	uint64_t sum;

	/* The latest table that follows a table which is too small. */
	while (i > 1 && !is_small(sizes[i - 2], sizes[i - 1]))
		i--;
	if (i <= 1)
		return false;
	*end = i;
	/* Earlier tables, as long as the merged table would be too large for
	 * one of them. */
	sum = sizes[--i];
	for (; i > 0; i--) {
		if (is_small(sizes[i - 1], sum))
			*first = i - 1;
		sum += sizes[i - 1];
	}
	return true;
}

uint64_t reftable_compact_size(const struct reftable_table *table)
{
	return table->end - (table->header_size - 1);
}
