/*
 * A hash of refs by name.
 *
 * Failure modes: no memory, too many refs; the table stays as it was.
 */
#include "daemon/store/looking/seen_refs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct entry {
	struct seen_ref ref; /* first member; points into TEXT */
	UT_hash_handle hh;
	char text[]; /* name, NUL, target, NUL */
};

struct seen_refs {
	struct entry *head; /* hash by name */
};

struct seen_refs *seen_refs_new(void)
{
	return calloc(1, sizeof(struct seen_refs));
}

void seen_refs_free(struct seen_refs *refs)
{
	struct entry *e;

	if (refs == NULL)
		return;
	while ((e = refs->head) != NULL) {
		HASH_DEL(refs->head, e);
		free(e);
	}
	free(refs);
}

static struct entry *find(const struct seen_refs *refs, const char *name)
{
	struct entry *e;

	HASH_FIND_STR(refs->head, name, e);
	return e;
}

static struct entry *entry_new(const struct seen_ref *ref)
{
	size_t len = strlen(ref->name) + 1;
	size_t more = ref->target != NULL ? strlen(ref->target) + 1 : 0;
	struct entry *e = calloc(1, sizeof(*e) + len + more);

	if (e == NULL)
		return NULL;
	e->ref = *ref;
	e->ref.name = memcpy(e->text, ref->name, len);
	if (ref->target != NULL)
		e->ref.target = memcpy(e->text + len, ref->target, more);
	return e;
}

int seen_refs_set(struct seen_refs *refs, const struct seen_ref *ref)
{
	struct entry *old = find(refs, ref->name), *e;

	if (!ref->is_unknown && !seen_ref_exists(ref)) {
		if (old != NULL)
			HASH_DEL(refs->head, old);
		free(old);
		return 0;
	}
	if (old == NULL && HASH_COUNT(refs->head) >= SEEN_REFS_MAX)
		return -EFBIG;
	e = entry_new(ref);
	if (e == NULL)
		return -ENOMEM;
	if (old != NULL)
		HASH_DEL(refs->head, old);
	free(old);
	HASH_ADD_KEYPTR(hh, refs->head, e->ref.name, strlen(e->ref.name), e);
	if (e->hh.tbl != NULL)
		return 0;
	free(e);
	return -ENOMEM;
}

const struct seen_ref *seen_refs_find(const struct seen_refs *refs,
    const char *name)
{
	struct entry *e = find(refs, name);

	return e != NULL ? &e->ref : NULL;
}

const struct seen_ref *seen_refs_next(const struct seen_refs *refs,
    const struct seen_ref *ref)
{
	const struct entry *e = ref == NULL ?
	    refs->head :
	    ((const struct entry *)(const void *)ref)->hh.next;

	return e != NULL ? &e->ref : NULL;
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
