/*
 * Happy path: a heap of one iterator per table. The iterator with the least key
 * is on top, and of equal keys the iterator of the latest table. The top record
 * hides the other records with its key, so it is returned, and they are
 * skipped.
 *
 * Failures: a damaged table ends the iteration.
 */
#include "daemon/store/tables/format/reftable_merged.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FACTOR 2

struct reftable_merged {
	struct reftable_iterator *iterators; /* one per table */
	size_t nr;
	struct reftable_iterator **heap;
	size_t heap_nr;
	struct reftable_iterator *last; /* of the returned record; not in the
					   heap */
	bool with_deletions;
};

static int compare_keys(const struct reftable_iterator *a,
    const struct reftable_iterator *b)
{
	return reftable_block_compare(a->cursor.key, a->cursor.key_len,
	    b->cursor.key, b->cursor.key_len);
}

static bool is_before(const struct reftable_iterator *a,
    const struct reftable_iterator *b)
{
	int order = compare_keys(a, b);

	return order != 0 ? order < 0 : a > b;
}

static void swap(struct reftable_iterator **a, struct reftable_iterator **b)
{
	struct reftable_iterator *was = *a;

	*a = *b;
	*b = was;
}

static void push(struct reftable_merged *m, struct reftable_iterator *it)
{
	size_t i = m->heap_nr++;

	m->heap[i] = it;
	for (; i > 0 && is_before(m->heap[i], m->heap[(i - 1) / 2]);
	    i = (i - 1) / 2)
		swap(&m->heap[i], &m->heap[(i - 1) / 2]);
}

static struct reftable_iterator *pop(struct reftable_merged *m)
{
	struct reftable_iterator *top = m->heap[0];
	size_t i = 0, child;

	m->heap[0] = m->heap[--m->heap_nr];
	while ((child = 2 * i + 1) < m->heap_nr) {
		if (child + 1 < m->heap_nr &&
		    is_before(m->heap[child + 1], m->heap[child]))
			child++;
		if (!is_before(m->heap[child], m->heap[i]))
			break;
		swap(&m->heap[i], &m->heap[child]);
		i = child;
	}
	return top;
}

/* Moves the iterator on, and puts it into the heap. */
static int advance(struct reftable_merged *m, struct reftable_iterator *it,
    struct reftable_fault *fault)
{
	int r = reftable_iterator_next(it, fault);

	if (r > 0)
		push(m, it);
	return r < 0 ? r : 0;
}

int reftable_merged_open(const struct reftable_stack *stack,
    enum reftable_section section, const char *from, bool with_deletions,
    struct reftable_budget *budget, struct reftable_merged **merged,
    struct reftable_fault *fault)
{
	struct reftable_merged *m = calloc(1, sizeof(*m));
	struct reftable_iterator *it;
	size_t i;
	int r = 0;

	if (m == NULL)
		return -ENOMEM;
	m->nr = stack->nr;
	m->with_deletions = with_deletions;
	m->iterators = calloc(m->nr + 1, sizeof(*m->iterators));
	m->heap = calloc(m->nr + 1, sizeof(struct reftable_iterator *));
	if (m->iterators == NULL || m->heap == NULL)
		r = -ENOMEM;
	for (i = 0; r == 0 && i < m->nr; i++) {
		it = &m->iterators[i];
		it->budget = budget;
		r = reftable_iterator_seek(it, &stack->tables[i], section,
		    (const uint8_t *)from, strlen(from), fault);
		if (r == 0)
			r = advance(m, it, fault);
	}
	if (r < 0)
		reftable_merged_free(m);
	else
		*merged = m;
	return r;
}

int reftable_merged_next(struct reftable_merged *m,
    const struct reftable_record **record, struct reftable_fault *fault)
{
	int r = 0;

	do {
		if (m->last != NULL)
			r = advance(m, m->last, fault);
		m->last = NULL;
		if (r < 0 || m->heap_nr == 0)
			return r;
		m->last = pop(m);
		while (r == 0 && m->heap_nr > 0 &&
		    compare_keys(m->heap[0], m->last) == 0)
			r = advance(m, pop(m), fault);
		if (r < 0)
			return r;
	} while (m->last->cursor.record.is_deletion && !m->with_deletions);
	*record = &m->last->cursor.record;
	return 1;
}

void reftable_merged_free(struct reftable_merged *m)
{
	size_t i;

	if (m == NULL)
		return;
	for (i = 0; m->iterators != NULL && i < m->nr; i++)
		reftable_iterator_done(&m->iterators[i]);
	free(m->iterators);
	free(m->heap);
	free(m);
}

/* ---- which tables to merge ---- */

/* Is A less than FACTOR times B? */
static bool is_small(uint64_t a, uint64_t b)
{
	return a / FACTOR < b;
}

bool reftable_merge_plan(const uint64_t *sizes, size_t nr, size_t *first,
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
	/* Adds earlier tables. Each table with less than twice the size of all
	 * tables behind it is merged, too, and so are the tables between. */
	sum = sizes[--i];
	for (; i > 0; i--) {
		if (is_small(sizes[i - 1], sum))
			*first = i - 1;
		sum += sizes[i - 1];
	}
	return true;
}

uint64_t reftable_merge_size(const struct reftable_table *table)
{
	return table->end - (table->header_size - 1);
}
