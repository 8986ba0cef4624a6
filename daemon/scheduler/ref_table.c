/*
 * Open addressing with linear probing, at most half full.
 *
 * Happy path:
 *	add	doubles a table that is half full
 *	remove	moves later slots of the run back, so that no run has a gap
 *
 * Failure modes:
 *	out of memory	only at add; the table is unchanged
 */
#include "daemon/scheduler/ref_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/scheduler/ref_tree.h"

#define SIZE_LEAST 16

static size_t next_of(const struct ref_table *t, size_t i)
{
	return (i + 1) & (t->size - 1);
}

struct ref_queue *ref_table_find(const struct ref_table *t, uint32_t hash,
    const struct ref_queue *parent, const char *component, size_t len)
{
	const struct ref_slot *s;
	size_t i;

	if (t->size == 0)
		return NULL;
	for (i = hash & (t->size - 1);; i = next_of(t, i)) {
		s = &t->slots[i];
		if (s->n == NULL)
			return NULL;
		if (s->hash == hash && s->n->parent == parent &&
		    s->n->len == len &&
		    memcmp(s->n->component, component, len) == 0)
			return s->n;
	}
}

static void put(struct ref_table *t, struct ref_slot slot)
{
	size_t i = slot.hash & (t->size - 1);

	while (t->slots[i].n != NULL)
		i = next_of(t, i);
	t->slots[i] = slot;
}

static int grow(struct ref_table *t)
{
	struct ref_table grown = { .nr = t->nr,
		.size = t->size > 0 ? 2 * t->size : SIZE_LEAST };
	size_t i;

	grown.slots = calloc(grown.size, sizeof(*grown.slots));
	if (grown.slots == NULL)
		return -ENOMEM;
	for (i = 0; i < t->size; i++)
		if (t->slots[i].n != NULL)
			put(&grown, t->slots[i]);
	free(t->slots);
	*t = grown;
	return 0;
}

int ref_table_add(struct ref_table *t, uint32_t hash, struct ref_queue *n)
{
	if (2 * t->nr >= t->size && grow(t) < 0)
		return -ENOMEM;
	put(t, (struct ref_slot){ n, hash });
	t->nr++;
	return 0;
}

void ref_table_remove(struct ref_table *t, uint32_t hash,
    const struct ref_queue *n)
{
	const size_t mask = t->size - 1;
	size_t gap = hash & mask, i;

	while (t->slots[gap].n != n)
		gap = next_of(t, gap);
	/* A slot may move back to the gap, but not before its own place. */
	for (i = next_of(t, gap); t->slots[i].n != NULL; i = next_of(t, i))
		if (((i - t->slots[i].hash) & mask) >= ((i - gap) & mask)) {
			t->slots[gap] = t->slots[i];
			gap = i;
		}
	t->slots[gap].n = NULL;
	t->nr--;
	if (t->nr > 0)
		return;
	free(t->slots);
	*t = (struct ref_table){ .nr = 0 };
}

void ref_table_done(struct ref_table *t)
{
	size_t i;

	for (i = 0; i < t->size; i++)
		free(t->slots[i].n);
	free(t->slots);
	*t = (struct ref_table){ .nr = 0 };
}
