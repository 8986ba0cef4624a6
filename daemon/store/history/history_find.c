/*
 * Rows by the index: segment by segment, row by row, in order.
 *
 * Failure modes:
 *	a pattern that may match very many	the rows of a segment are read
 *	names					instead; this can stop anywhere
 *	the index fails				see history_answer.c
 */
#include <errno.h>

#include "daemon/store/history/history_internal.h"

/* If the index finds nothing in time, the rows get a time of their own: the
 * next turn would begin with the same search. */
static int find_in_segment(struct history_question *q, uint64_t after,
    uint64_t before)
{
	struct journal_index *index = q->h->index;
	uint64_t lsn;
	int found, r = 0;

	journal_index_search_in(index, after, before);
	while (r == 0 &&
	    (found = journal_index_search_next(index, q->telling.until_ns,
		 &lsn)) > 0)
		r = history_scan_range(q, lsn - 1, lsn + 1);
	if (r != 0 || found == 0)
		return r;
	if (found == -EINTR) {
		history_begin_time(q);
		return history_scan_range(q, after, before);
	}
	q->is_index_bad = true;
	return found;
}

/* Narrows *AFTER and *BEFORE to the first segment in the order of the
 * question. */
static void narrow(const struct history_question *q, uint64_t *after,
    uint64_t *before)
{
	const uint64_t bits = JOURNAL_INDEX_SEGMENT_BITS;
	uint64_t edge;

	if (q->down) {
		edge = (*before - 1) >> bits << bits;
		if (edge > *after + 1)
			*after = edge - 1;
	} else {
		edge = (((*after + 1) >> bits) + 1) << bits;
		if (edge < *before)
			*before = edge;
	}
}

int history_find_range(struct history_question *q, uint64_t after,
    uint64_t before)
{
	uint64_t from, to;
	int r = 0;

	while (r == 0 && after + 1 < before) {
		from = after;
		to = before;
		narrow(q, &from, &to);
		r = find_in_segment(q, from, to);
		if (q->down)
			before = from + 1;
		else
			after = to - 1;
		if (r == 0) {
			q->telling.ans->next.lsn = q->down ? before : after;
			q->telling.ans->next.nr = 0;
			r = history_look_at_time(q);
		}
	}
	return r;
}
