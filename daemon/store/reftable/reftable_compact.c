#include "daemon/store/reftable/reftable_compact.h"

#include <errno.h>

#include "daemon/store/reftable/reftable_merged.h"

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

static int copy(const struct reftable_stack *stack, size_t first, size_t end,
    enum reftable_section section, struct reftable_budget *budget,
    struct reftable_writer *writer, struct reftable_fault *fault)
{
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	int r;

	r = reftable_merged_open(stack->tables + first, end - first, section,
	    "", first > 0, budget, &merged, fault);
	if (r < 0)
		return r;
	while ((r = reftable_merged_next(merged, &rec, fault)) > 0) {
		r = reftable_writer_add(writer, rec);
		if (r < 0)
			break;
	}
	reftable_merged_free(merged);
	return r;
}

int reftable_compact_merge(const struct reftable_stack *stack, size_t first,
    size_t end, struct reftable_budget *budget, reftable_write_fn *write,
    void *arg, struct reftable_fault *fault)
{
	struct reftable_writer *writer = reftable_writer_new(stack->format,
	    reftable_stack_min_index(stack->tables + first, end - first),
	    reftable_stack_max_index(stack->tables + first, end - first), write,
	    arg);
	int r;

	if (writer == NULL)
		return -ENOMEM;
	r = copy(stack, first, end, REFTABLE_REFS, budget, writer, fault);
	if (r == 0)
		r = copy(stack, first, end, REFTABLE_LOGS, budget, writer,
		    fault);
	if (r == 0)
		r = reftable_writer_finish(writer);
	reftable_writer_free(writer);
	return r;
}
