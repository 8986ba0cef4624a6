/*
 * A table by name, in three pieces of memory: the refs, their text, and an
 * index by hash. In a heap the memory of a look of a million refs would stay,
 * because other memory lies in between. So a large piece is mapped, and goes
 * back to the system at the end of the look. The pieces move as they grow, so
 * text has offsets.
 *
 * A ref without values stays in the table until the look ends, so an entry
 * keeps its number.
 *
 * Failure modes: no memory, or too many refs. Both are found before a change,
 * so the table stays as it was.
 */
#include "daemon/store/looking/seen_refs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/hash.h"
#include "proto/lib/pages.h"

/* Bytes of names and targets for each ref that has room, because without a
 * bound a million long names would take gigabytes. */
#define TEXT_PER_REF 256
#define TEXT_MIN     ((size_t)64 << 10)
#define FIRST_BYTES  4096

struct piece {
	char *at;
	size_t bytes;
};

struct value {
	uint32_t target; /* 0: none */
	bool is_there, is_unknown;
	struct refd_oid oid;
};

struct seen_entry {
	uint32_t name, hash;
	struct value of[SEEN_SIDES];
};

struct seen_refs {
	/* An array of struct seen_entry; the text of all refs; and the index,
	 * an array of uint32_t. An index slot has the number of an entry, from
	 * 1 on, or 0. At most half of the index is used, so every search ends
	 * at a 0. */
	struct piece entries, text, index;
	size_t nr, text_len;
	size_t nr_of[SEEN_SIDES], max;
};

/* Makes room for BYTES. */
static bool piece_grow(struct piece *p, size_t bytes)
{
	size_t more = p->bytes > 0 ? p->bytes : FIRST_BYTES;
	char *at;

	while (more < bytes)
		more *= 2;
	if (more == p->bytes)
		return true;
	at = pages_grow(p->at, p->bytes, more);
	if (at == NULL)
		return false;
	*p = (struct piece){ at, more };
	return true;
}

static void piece_free(struct piece *p)
{
	pages_free(p->at, p->bytes);
}

struct seen_refs *seen_refs_new(size_t max)
{
	struct seen_refs *refs = calloc(1, sizeof(*refs));

	if (refs == NULL)
		return NULL;
	refs->max = max;
	refs->text_len = 1; /* no text has offset 0 */
	return refs;
}

size_t seen_refs_max(const struct seen_refs *refs)
{
	return refs->max;
}

void seen_refs_free(struct seen_refs *refs)
{
	if (refs == NULL)
		return;
	piece_free(&refs->entries);
	piece_free(&refs->text);
	piece_free(&refs->index);
	free(refs);
}

static struct seen_entry *entry_at(const struct seen_refs *refs, size_t i)
{
	return (struct seen_entry *)(void *)refs->entries.at + i;
}

/* ---- the index ---- */

static uint32_t *slot_of(const struct piece *index, size_t i)
{
	return (uint32_t *)(void *)index->at + i;
}

static size_t mask_of(const struct piece *index)
{
	return index->bytes / sizeof(uint32_t) - 1;
}

static void index_add(struct piece *index, uint32_t hash, size_t nr)
{
	size_t i = hash & mask_of(index);

	while (*slot_of(index, i) != 0)
		i = (i + 1) & mask_of(index);
	*slot_of(index, i) = (uint32_t)nr;
}

static struct seen_entry *find(const struct seen_refs *refs, const char *name,
    uint32_t hash)
{
	const struct piece *index = &refs->index;
	struct seen_entry *ent;
	size_t i, nr;

	if (index->at == NULL)
		return NULL;
	for (i = hash & mask_of(index); (nr = *slot_of(index, i)) != 0;
	    i = (i + 1) & mask_of(index)) {
		ent = entry_at(refs, nr - 1);
		if (ent->hash == hash &&
		    strcmp(refs->text.at + ent->name, name) == 0)
			return ent;
	}
	return NULL;
}

static bool index_room(struct seen_refs *refs)
{
	struct piece index = { NULL, 0 };
	size_t i;

	if (refs->index.bytes / sizeof(uint32_t) > 2 * refs->nr)
		return true;
	if (!piece_grow(&index, 2 * refs->index.bytes))
		return false;
	for (i = 0; i < refs->nr; i++)
		index_add(&index, entry_at(refs, i)->hash, i + 1);
	piece_free(&refs->index);
	refs->index = index;
	return true;
}

/* ---- changes ---- */

/* Adds LEN bytes at DATA, for which there is room; returns their offset. */
static uint32_t text_add(struct seen_refs *refs, const char *data, size_t len)
{
	const size_t at = refs->text_len;

	memcpy(refs->text.at + at, data, len);
	refs->text_len += len;
	return (uint32_t)at;
}

static int text_room(struct seen_refs *refs, size_t len)
{
	if (refs->text_len + len > TEXT_MIN + TEXT_PER_REF * refs->max)
		return -EFBIG;
	return piece_grow(&refs->text, refs->text_len + len) ? 0 : -ENOMEM;
}

static bool entry_room(struct seen_refs *refs)
{
	return index_room(refs) &&
	    piece_grow(&refs->entries,
		(refs->nr + 1) * sizeof(struct seen_entry));
}

static void clear(struct seen_refs *refs, enum seen_side side,
    struct seen_entry *ent)
{
	if (ent == NULL || !ent->of[side].is_there)
		return;
	ent->of[side] = (struct value){ .is_there = false };
	refs->nr_of[side]--;
}

int seen_refs_set(struct seen_refs *refs, enum seen_side side,
    const struct seen_ref *ref)
{
	const size_t len = strlen(ref->name);
	const size_t more = ref->target != NULL ? strlen(ref->target) + 1 : 0;
	const uint32_t hash = hash_key(ref->name, len);
	struct seen_entry *ent = find(refs, ref->name, hash);
	struct value *v;
	int r;

	if (!ref->is_unknown && !seen_ref_exists(ref)) {
		clear(refs, side, ent);
		return 0;
	}
	if ((ent == NULL || !ent->of[side].is_there) &&
	    refs->nr_of[side] >= refs->max)
		return -EFBIG;
	r = text_room(refs, len + 1 + more);
	if (r < 0)
		return r;
	if (ent == NULL && !entry_room(refs))
		return -ENOMEM;
	if (ent == NULL) {
		ent = entry_at(refs, refs->nr++);
		ent->hash = hash;
		ent->name = text_add(refs, ref->name, len + 1);
		index_add(&refs->index, hash, refs->nr);
	}
	v = &ent->of[side];
	refs->nr_of[side] += !v->is_there;
	*v = (struct value){ .is_there = true,
		.is_unknown = ref->is_unknown,
		.oid = ref->oid };
	if (more > 0)
		v->target = text_add(refs, ref->target, more);
	return 0;
}

void seen_refs_know(struct seen_refs *refs)
{
	struct seen_entry *ent;
	size_t i;

	for (i = 0; i < refs->nr; i++) {
		ent = entry_at(refs, i);
		clear(refs, SEEN_KNOWN, ent);
		if (!ent->of[SEEN_DISK].is_there ||
		    ent->of[SEEN_DISK].is_unknown)
			continue;
		ent->of[SEEN_KNOWN] = ent->of[SEEN_DISK];
		refs->nr_of[SEEN_KNOWN]++;
	}
}

/* ---- questions ---- */

static bool get(const struct seen_refs *refs, enum seen_side side,
    const struct seen_entry *ent, struct seen_ref *ref)
{
	const struct value *v = &ent->of[side];

	*ref = (struct seen_ref){ .name = refs->text.at + ent->name,
		.oid = v->oid,
		.is_unknown = v->is_unknown };
	if (v->target != 0)
		ref->target = refs->text.at + v->target;
	return v->is_there;
}

bool seen_refs_find(const struct seen_refs *refs, enum seen_side side,
    const char *name, struct seen_ref *ref)
{
	const struct seen_entry *ent =
	    find(refs, name, hash_key(name, strlen(name)));

	return ent != NULL && get(refs, side, ent, ref);
}

size_t seen_refs_nr(const struct seen_refs *refs)
{
	return refs->nr;
}

bool seen_refs_get(const struct seen_refs *refs, enum seen_side side, size_t i,
    struct seen_ref *ref)
{
	return get(refs, side, entry_at(refs, i), ref);
}

bool seen_ref_exists(const struct seen_ref *ref)
{
	return ref != NULL &&
	    (ref->target != NULL || !refd_oid_is_null(&ref->oid));
}

bool seen_ref_is_same(const struct seen_ref *a, const struct seen_ref *b)
{
	if (!seen_ref_exists(a) || !seen_ref_exists(b))
		return seen_ref_exists(a) == seen_ref_exists(b);
	if (a->target != NULL || b->target != NULL)
		return a->target != NULL && b->target != NULL &&
		    strcmp(a->target, b->target) == 0;
	return refd_oid_eq(&a->oid, &b->oid);
}
