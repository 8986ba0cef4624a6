#include "daemon/scheduler/busy.h"

#include <stdbool.h>
#include <string.h>

/* FNV-1a. A client that causes a collision hides only this client's own name,
 * so no stronger hash is needed. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = 14695981039346656037ULL;

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211ULL;
	return hash != 0 ? hash : 1;
}

static void age(struct busy_slot *slot, int64_t period)
{
	if (slot->period == period)
		return;
	slot->txns_before = slot->period + 1 == period ? slot->txns : 0;
	slot->refs_before = slot->period + 1 == period ? slot->refs : 0;
	slot->txns = slot->refs = 0;
	slot->period = period;
}

static void take_over(struct busy_slot *slot, const char *name, uint64_t hash)
{
	size_t len = strlen(name);

	if (len > BUSY_NAME - 1)
		name += len - (BUSY_NAME - 1);
	strcpy(slot->name, name);
	slot->hash = hash;
	slot->txns = slot->refs = slot->txns_before = slot->refs_before = 0;
}

void busy_count(struct busy *b, const char *name, size_t refs, int64_t now_ns)
{
	int64_t period = now_ns / BUSY_PERIOD_NS;
	uint64_t hash = hash_of(name);
	struct busy_slot *set, *slot, *least;
	size_t i;

	set = &b->slots[hash % (BUSY_SLOTS / BUSY_WAYS) * BUSY_WAYS];
	least = set;
	for (i = 0; i < BUSY_WAYS && set[i].hash != hash; i++) {
		age(&set[i], period);
		if (set[i].txns + set[i].txns_before <
		    least->txns + least->txns_before)
			least = &set[i];
	}
	slot = i < BUSY_WAYS ? &set[i] : least;
	age(slot, period);
	if (i == BUSY_WAYS)
		take_over(slot, name, hash);
	slot->txns++;
	slot->refs += refs;
}

static bool is_busier(const struct busy_one *a, const struct busy_one *b)
{
	return a->txns > b->txns || (a->txns == b->txns && a->refs > b->refs);
}

/* Inserts ONE into LIST, sorted by activity. */
static void insert(struct busy_one *list, size_t *nr, size_t max,
    const struct busy_one *one)
{
	size_t i = *nr;

	while (i > 0 && is_busier(one, &list[i - 1]))
		i--;
	if (i == max)
		return;
	if (*nr < max)
		++*nr;
	memmove(&list[i + 1], &list[i], (*nr - 1 - i) * sizeof(*list));
	list[i] = *one;
}

size_t busy_list(const struct busy *b, int64_t now_ns, struct busy_one *list,
    size_t max, int64_t *span_ns)
{
	int64_t period = now_ns / BUSY_PERIOD_NS;
	struct busy_slot slot;
	struct busy_one one;
	size_t i, nr = 0;

	*span_ns = BUSY_PERIOD_NS + now_ns % BUSY_PERIOD_NS;
	for (i = 0; i < BUSY_SLOTS; i++) {
		slot = b->slots[i];
		age(&slot, period);
		one = (struct busy_one){ b->slots[i].name,
			slot.txns + slot.txns_before,
			slot.refs + slot.refs_before };
		if (slot.hash != 0 && one.txns > 0)
			insert(list, &nr, max, &one);
	}
	return nr;
}
