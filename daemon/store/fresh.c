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

void fresh_begin(struct fresh *fresh, const struct refd_txid *newest)
{
	fresh->is_begun = true;
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

/* Where ID is, or would be. Its last bytes are random, or at least whoever
 * makes them otherwise makes nobody's table larger. */
static struct refd_txid *slot_of(const struct fresh_half *half,
    const struct refd_txid *id)
{
	uint64_t hash;
	size_t i;

	memcpy(&hash, id->bytes + sizeof(id->bytes) - sizeof(hash),
	    sizeof(hash));
	i = hash % SLOTS;
	while (compare(&half->slots[i], &none) != 0 &&
	    compare(&half->slots[i], id) != 0)
		i = (i + 1) % SLOTS;
	return &half->slots[i];
}

static bool half_has(const struct fresh_half *half, const struct refd_txid *id)
{
	return half->slots != NULL && compare(slot_of(half, id), id) == 0;
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
	*slot_of(half, id) = *id;
	half->nr++;
}

bool fresh_see(struct fresh *fresh, const struct refd_txid *id)
{
	if (!fresh->is_begun || compare(id, &fresh->floor) <= 0 ||
	    half_has(&fresh->halves[0], id) || half_has(&fresh->halves[1], id))
		return false;
	add(fresh, id);
	return true;
}
