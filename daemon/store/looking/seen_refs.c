/*
 * A tree of refs by name. A user chooses the names, and a hash of chosen names
 * can be slow.
 *
 * Failure modes: no memory, too many refs; the tree stays as it was.
 */
#include "daemon/store/looking/seen_refs.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

struct node {
	struct seen_ref ref; /* first member; points into TEXT */
	struct node *prev, *next;
	char text[]; /* name, NUL, target, NUL */
};

struct seen_refs {
	void *root; /* tsearch(3) */
	struct node *list;
	size_t nr, max;
};

static int compare_names(const void *va, const void *vb)
{
	const struct seen_ref *a = va, *b = vb;

	return strcmp(a->name, b->name);
}

struct seen_refs *seen_refs_new(size_t max)
{
	struct seen_refs *refs = calloc(1, sizeof(*refs));

	if (refs != NULL)
		refs->max = max;
	return refs;
}

size_t seen_refs_max(const struct seen_refs *refs)
{
	return refs->max;
}

void seen_refs_free(struct seen_refs *refs)
{
	if (refs != NULL)
		tdestroy(refs->root, free);
	free(refs);
}

static struct node *find(const struct seen_refs *refs, const char *name)
{
	const struct seen_ref key = { .name = name };
	void *const *node = tfind(&key, &refs->root, compare_names);

	return node != NULL ? *node : NULL;
}

static void drop(struct seen_refs *refs, struct node *e)
{
	tdelete(e, &refs->root, compare_names);
	DL_DELETE(refs->list, e);
	refs->nr--;
	free(e);
}

static struct node *node_new(const struct seen_ref *ref)
{
	size_t len = strlen(ref->name) + 1;
	size_t more = ref->target != NULL ? strlen(ref->target) + 1 : 0;
	struct node *e = calloc(1, sizeof(*e) + len + more);

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
	struct node *old = find(refs, ref->name), *e;
	void **place;

	if (!ref->is_unknown && !seen_ref_exists(ref)) {
		if (old != NULL)
			drop(refs, old);
		return 0;
	}
	if (old == NULL && refs->nr >= refs->max)
		return -EFBIG;
	e = node_new(ref);
	place = e != NULL ? tsearch(e, &refs->root, compare_names) : NULL;
	if (place == NULL) {
		free(e);
		return -ENOMEM;
	}
	*place = e;
	DL_APPEND(refs->list, e);
	refs->nr += old == NULL;
	if (old != NULL)
		DL_DELETE(refs->list, old);
	free(old);
	return 0;
}

const struct seen_ref *seen_refs_find(const struct seen_refs *refs,
    const char *name)
{
	struct node *e = find(refs, name);

	return e != NULL ? &e->ref : NULL;
}

const struct seen_ref *seen_refs_next(const struct seen_refs *refs,
    const struct seen_ref *ref)
{
	const struct node *e = ref == NULL ?
	    refs->list :
	    ((const struct node *)(const void *)ref)->next;

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
