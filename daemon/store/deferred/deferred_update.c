/*
 * Recorded updates that were answered `unknown`, because they could not be
 * finished. Until a retry finishes the update, a query by id gets the same
 * answer.
 *
 * Happy path: there is none. A start recovers before the daemon answers, so it
 * begins without such updates.
 *
 * Failure: memory. Such an update might be answered `ok`, so the store ends.
 */
#include <stdlib.h>

#include "daemon/base/hash.h"
#include "daemon/store/deferred/deferred_internal.h"

struct deferred_update {
	struct {
		uint64_t lsn, index;
	} update;
	UT_hash_handle hh;
};

/* Under MUTEX. */
static struct deferred_update *find(struct deferred *d, uint64_t lsn,
    uint32_t index)
{
	const struct deferred_update key = { .update = { lsn, index } };
	struct deferred_update *un;

	HASH_FIND(hh, d->updates, &key.update, sizeof(key.update), un);
	return un;
}

/* Under MUTEX, and false if out of memory. */
static bool add(struct deferred *d, uint64_t lsn, uint32_t index)
{
	struct deferred_update *un;

	if (find(d, lsn, index) != NULL)
		return true;
	un = calloc(1, sizeof(*un));
	if (un == NULL)
		return false;
	un->update.lsn = lsn;
	un->update.index = index;
	HASH_ADD(hh, d->updates, update, sizeof(un->update), un);
	if (un->hh.tbl != NULL)
		return true;
	free(un);
	return false;
}

void deferred_add_update(struct deferred *d, uint64_t lsn, uint32_t index)
{
	bool added;

	mutex_lock(&d->mutex);
	added = add(d, lsn, index);
	mutex_unlock(&d->mutex);
	if (!added)
		d->cfg->fatal(d->cfg->store,
		    "out of memory for deferred updates");
}

uint64_t deferred_lowest_lsn(struct deferred *d)
{
	struct deferred_update *un, *next;
	uint64_t lowest = 0;

	mutex_lock(&d->mutex);
	HASH_ITER(hh, d->updates, un, next)
		if (lowest == 0 || un->update.lsn < lowest)
			lowest = un->update.lsn;
	mutex_unlock(&d->mutex);
	return lowest;
}

bool deferred_has_update(struct deferred *d, const struct journal_row *row,
    uint32_t index)
{
	bool has;

	mutex_lock(&d->mutex);
	has = find(d, row->kind == JOURNAL_DEFERRED ? row->refers_to : row->lsn,
		  index) != NULL;
	mutex_unlock(&d->mutex);
	return has;
}

void deferred_end_update(struct deferred *d, uint64_t lsn, uint32_t index)
{
	struct deferred_update *un;

	mutex_lock(&d->mutex);
	un = find(d, lsn, index);
	if (un != NULL) {
		HASH_DEL(d->updates, un);
		d->nr_ended++;
	}
	mutex_unlock(&d->mutex);
	free(un);
}

uint64_t deferred_nr_ended(struct deferred *d)
{
	uint64_t nr;

	mutex_lock(&d->mutex);
	nr = d->nr_ended;
	mutex_unlock(&d->mutex);
	return nr;
}

void deferred_free_updates(struct deferred *d)
{
	struct deferred_update *un, *next;

	HASH_ITER(hh, d->updates, un, next) {
		HASH_DEL(d->updates, un);
		free(un);
	}
}
