/*
 * The happy path: above the floor, and in neither half: a few compares.
 *
 * What fails: memory; then the floor rises over the id instead. An id of all
 * zeroes is never fresh.
 */
#include "daemon/store/fresh.h"

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

void fresh_begin(struct fresh *fresh, const struct refd_txid *newest,
    const struct refd_txid *secret)
{
	fresh->is_begun = true;
	memcpy(fresh->key, secret->bytes, sizeof(fresh->key));
	fresh->floor = *newest;
}

static void half_done(struct fresh_half *half)
{
	free(half->slots);
	*half = (struct fresh_half){ .slots = NULL };
}

void fresh_done(struct fresh *fresh)
{
	half_done(&fresh->halves[0]);
	half_done(&fresh->halves[1]);
	fresh->is_begun = false;
}

/* Where ID is, or would be. Clients choose their ids, all of their bytes: so
 * the hash has a key (NH: Black and others, UMAC, 1999). */
static struct refd_txid *slot_of(const struct fresh_half *half,
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

static bool has(const struct fresh *fresh, const struct fresh_half *half,
    const struct refd_txid *id)
{
	return half->slots != NULL &&
	    compare(slot_of(half, id, fresh->key), id) == 0;
}

static void rise(struct fresh *fresh, const struct refd_txid *id)
{
	if (compare(id, &fresh->floor) > 0)
		fresh->floor = *id;
}

/* The older half goes, and the younger one is the older one. */
static void turn_over(struct fresh *fresh)
{
	struct fresh_half *old = &fresh->halves[1];
	size_t i;

	for (i = 0; old->slots != NULL && i < SLOTS; i++)
		rise(fresh, &old->slots[i]);
	half_done(old);
	*old = fresh->halves[0];
	fresh->halves[0] = (struct fresh_half){ .slots = NULL };
}

static void add(struct fresh *fresh, const struct refd_txid *id)
{
	struct fresh_half *half = &fresh->halves[0];

	if (half->nr == HALF_IDS)
		turn_over(fresh);
	if (half->slots == NULL)
		half->slots = calloc(SLOTS, sizeof(*half->slots));
	if (half->slots == NULL) {
		rise(fresh, id);
		return;
	}
	*slot_of(half, id, fresh->key) = *id;
	half->nr++;
}

bool fresh_see(struct fresh *fresh, const struct refd_txid *id)
{
	if (!fresh->is_begun || compare(id, &fresh->floor) <= 0 ||
	    has(fresh, &fresh->halves[0], id) ||
	    has(fresh, &fresh->halves[1], id))
		return false;
	add(fresh, id);
	return true;
}
