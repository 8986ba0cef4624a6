/*
 * Updates that are recorded and were answered `unknown`, since they could not
 * be finished: until recovery has, asking by id gets the same answer.
 *
 * The happy path: there is none. A start recovers before it answers, so it
 * begins with nothing here.
 *
 * What fails: memory. Then one might be answered `ok` that is not, so the
 * store is of no more use.
 */
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/store_internal.h"

struct unfinished {
	struct {
		uint64_t lsn, index;
	} update;
	UT_hash_handle hh;
};

/* Under MUTEX. */
static struct unfinished *find(struct store *s, uint64_t lsn, uint32_t index)
{
	const struct unfinished key = { .update = { lsn, index } };
	struct unfinished *un;

	HASH_FIND(hh, s->unfinished, &key.update, sizeof(key.update), un);
	return un;
}

/* false: out of memory. Under MUTEX. */
static bool add(struct store *s, uint64_t lsn, uint32_t index)
{
	struct unfinished *un;

	if (find(s, lsn, index) != NULL)
		return true;
	un = calloc(1, sizeof(*un));
	if (un == NULL)
		return false;
	un->update.lsn = lsn;
	un->update.index = index;
	HASH_ADD(hh, s->unfinished, update, sizeof(un->update), un);
	if (un->hh.tbl != NULL)
		return true;
	free(un);
	return false;
}

void unfinished_note(void *store, uint64_t lsn, uint32_t index)
{
	struct store *s = store;
	bool added;

	pthread_mutex_lock(&s->mutex);
	added = add(s, lsn, index);
	pthread_mutex_unlock(&s->mutex);
	if (!added)
		store_set_fatal(s, "out of memory for what is unfinished");
}

bool unfinished_has(struct store *s, const struct journal_row *row,
    uint32_t index)
{
	bool has;

	pthread_mutex_lock(&s->mutex);
	has = find(s, row->kind == JOURNAL_PARKED ? row->voids : row->lsn,
		  index) != NULL;
	pthread_mutex_unlock(&s->mutex);
	return has;
}

void unfinished_end(struct store *s, uint64_t lsn, uint32_t index)
{
	struct unfinished *un;

	pthread_mutex_lock(&s->mutex);
	un = find(s, lsn, index);
	if (un != NULL)
		HASH_DEL(s->unfinished, un);
	pthread_mutex_unlock(&s->mutex);
	free(un);
}

void unfinished_free(struct store *s)
{
	struct unfinished *un, *next;

	HASH_ITER(hh, s->unfinished, un, next) {
		HASH_DEL(s->unfinished, un);
		free(un);
	}
}
