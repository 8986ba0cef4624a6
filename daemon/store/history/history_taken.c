/*
 * Finds the members of a row that were taken back.
 *
 * Happy path: reads the rows that refer to the row or to its deferred copies
 * (there are few), and sorts them for fast look-ups.
 *
 * Failure modes: a negative errno; free the results even so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/history/history_internal.h"

static int add_taking(struct history_takings *all,
    const struct record_member *m)
{
	struct history_taken *grown;

	grown = reallocarray(all->list, all->nr + 1, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	all->list = grown;
	grown = &grown[all->nr];
	grown->index = m->index;
	grown->nr = all->nr;
	grown->status = m->status;
	grown->text = m->text != NULL ? strdup(m->text) : NULL;
	if (m->text != NULL && grown->text == NULL)
		return -ENOMEM;
	all->nr++;
	return 0;
}

static int add_copy(struct history_takings *all, uint64_t lsn)
{
	uint64_t *grown;

	grown = reallocarray(all->copies, all->nr_copies + 1, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	all->copies = grown;
	grown[all->nr_copies++] = lsn;
	return 0;
}

static int take_about(void *arg, const struct journal_row *row)
{
	struct history_takings *all = arg;
	struct record rec;
	size_t i;
	int r;

	if (row->kind == JOURNAL_DEFERRED)
		return add_copy(all, row->lsn);
	if (row->kind != JOURNAL_ABORT)
		return 0;
	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	for (i = 0; i < rec.nr_members && r == 0; i++)
		if (rec.members[i].status != REFD_OK)
			r = add_taking(all, &rec.members[i]);
	record_done(&rec);
	return r;
}

static int compare_takings(const void *a, const void *b)
{
	const struct history_taken *x = a, *y = b;

	if (x->index != y->index)
		return (x->index > y->index) - (x->index < y->index);
	return (x->nr > y->nr) - (x->nr < y->nr);
}

int history_takings(struct history *h, uint64_t lsn,
    struct history_takings *all)
{
	size_t i;
	int r;

	r = journal_read_about(h->reader, lsn, take_about, all);
	for (i = 0; i < all->nr_copies && r == 0; i++)
		r = journal_read_about(h->reader, all->copies[i], take_about,
		    all);
	if (all->nr > 0)
		qsort(all->list, all->nr, sizeof(*all->list), compare_takings);
	return r > 0 ? -EIO : r;
}

void history_takings_done(struct history_takings *all)
{
	size_t i;

	for (i = 0; i < all->nr; i++)
		free(all->list[i].text);
	free(all->list);
	free(all->copies);
}

const struct history_taken *history_taking_of(const struct history_takings *all,
    uint32_t index)
{
	size_t low = 0, high = all->nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (all->list[mid].index <= index)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && all->list[low - 1].index == index ?
	    &all->list[low - 1] :
	    NULL;
}
