/*
 * The happy path: the id is above the floor and in neither half of the set. A
 * few comparisons show that.
 *
 * Failure: without memory for an id, the floor rises above this id instead, so
 * the id is not new any more. An id of all zeroes is never above the floor, so
 * this id is never new.
 */
#include "daemon/store/admission/txid_filter.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HALF_IDS 16384
#define SLOTS    (2 * HALF_IDS)

static const struct refd_txid none;

static int compare(const struct refd_txid *a, const struct refd_txid *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

void txid_filter_begin(struct txid_filter *f, const struct refd_txid *newest,
    const struct refd_txid *secret)
{
	f->is_begun = true;
	memcpy(f->key, secret->bytes, sizeof(f->key));
	f->floor = *newest;
}

static void half_done(struct txid_filter_half *half)
{
	free(half->slots);
	*half = (struct txid_filter_half){ .slots = NULL };
}

void txid_filter_done(struct txid_filter *f)
{
	half_done(&f->halves[0]);
	half_done(&f->halves[1]);
	f->is_begun = false;
}

/* The slot of ID. Clients choose all bytes of their ids, so the hash has a
 * secret key (NH: Black and others, UMAC, 1999). */
static struct refd_txid *slot_of(const struct txid_filter_half *half,
    const struct refd_txid *id, const uint32_t key[4])
{
	uint32_t w[4];
	uint64_t hash;
	size_t i;

	_Static_assert(sizeof(w) == sizeof(id->bytes), "four words");
	memcpy(w, id->bytes, sizeof(w));
	for (i = 0; i < 4; i++)
		w[i] += key[i];
	hash = (uint64_t)w[0] * w[1] + (uint64_t)w[2] * w[3];
	i = (hash ^ hash >> 32) % SLOTS;
	while (compare(&half->slots[i], &none) != 0 &&
	    compare(&half->slots[i], id) != 0)
		i = (i + 1) % SLOTS;
	return &half->slots[i];
}

static bool has(const struct txid_filter *f,
    const struct txid_filter_half *half, const struct refd_txid *id)
{
	return half->slots != NULL &&
	    compare(slot_of(half, id, f->key), id) == 0;
}

static void rise(struct txid_filter *f, const struct refd_txid *id)
{
	if (compare(id, &f->floor) > 0)
		f->floor = *id;
}

/* Drops the older half. The younger half becomes the older half. */
static void turn_over(struct txid_filter *f)
{
	struct txid_filter_half *old = &f->halves[1];
	size_t i;

	for (i = 0; old->slots != NULL && i < SLOTS; i++)
		rise(f, &old->slots[i]);
	half_done(old);
	*old = f->halves[0];
	f->halves[0] = (struct txid_filter_half){ .slots = NULL };
}

static void remember(struct txid_filter *f, const struct refd_txid *id)
{
	struct txid_filter_half *half = &f->halves[0];

	if (half->nr == HALF_IDS)
		turn_over(f);
	if (half->slots == NULL)
		half->slots = calloc(SLOTS, sizeof(*half->slots));
	if (half->slots == NULL) {
		rise(f, id);
		return;
	}
	*slot_of(half, id, f->key) = *id;
	half->nr++;
}

bool txid_filter_add(struct txid_filter *f, const struct refd_txid *id)
{
	if (!f->is_begun || compare(id, &f->floor) <= 0 ||
	    has(f, &f->halves[0], id) || has(f, &f->halves[1], id))
		return false;
	remember(f, id);
	return true;
}
