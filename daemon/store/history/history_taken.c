/*
 * Finds the members of a row that were taken back.
 *
 * Happy path: reads the rows that refer to the row or to its deferred copies;
 * there are few. The last word about a member counts.
 *
 * Failure modes: a negative errno; free the results even so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/history/history_internal.h"
#include "proto/lib/array.h"

/* A damaged index would be out of range. */
static int add_taking(struct history_takings *all,
    const struct record_member *m)
{
	struct history_taken *taken;

	if (m->status == REFD_OK || m->index >= all->nr)
		return 0;
	if (all->list == NULL)
		all->list = calloc(all->nr, sizeof(*all->list));
	if (all->list == NULL)
		return -ENOMEM;
	taken = &all->list[m->index];
	free(taken->text);
	taken->status = m->status;
	taken->text = m->text != NULL ? strdup(m->text) : NULL;
	return m->text != NULL && taken->text == NULL ? -ENOMEM : 0;
}

static int add_copy(struct history_takings *all, uint64_t lsn)
{
	uint64_t *grown;

	grown = array_room(all->copies, all->nr_copies, &all->copies_size,
	    sizeof(*grown));
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
		r = add_taking(all, &rec.members[i]);
	record_done(&rec);
	return r;
}

int history_takings(struct history *h, uint64_t lsn, size_t nr_updates,
    struct history_takings *all)
{
	size_t i;
	int r;

	all->nr = nr_updates;
	r = journal_read_about(h->reader, lsn, take_about, all);
	for (i = 0; i < all->nr_copies && r == 0; i++)
		r = journal_read_about(h->reader, all->copies[i], take_about,
		    all);
	return r > 0 ? -EIO : r;
}

void history_takings_done(struct history_takings *all)
{
	size_t i;

	for (i = 0; all->list != NULL && i < all->nr; i++)
		free(all->list[i].text);
	free(all->list);
	free(all->copies);
}

const struct history_taken *history_taking_of(const struct history_takings *all,
    uint32_t index)
{
	return all->list != NULL && index < all->nr &&
		all->list[index].status != REFD_OK ?
	    &all->list[index] :
	    NULL;
}
