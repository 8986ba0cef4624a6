#include "client/restore/refs_then.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/cli.h"

static int compare(const void *a, const void *b)
{
	const struct ref_then *x = a, *y = b;

	return strcmp(x->name, y->name);
}

const struct ref_then *refs_then_find(const struct refs_then *p,
    const char *name)
{
	struct ref_then key = { .name = (char *)name };
	void *const *found = tfind(&key, &p->tree, compare);

	return found ? *found : NULL;
}

static struct ref_then *get(struct refs_then *p, const char *name)
{
	struct ref_then *ref = (struct ref_then *)refs_then_find(p, name);

	if (ref)
		return ref;
	ref = xcalloc(1, sizeof(*ref));
	ref->name = xstrdup(name);
	p->refs = xroom(p->refs, p->nr, &p->size, sizeof(*p->refs));
	p->refs[p->nr++] = ref;
	if (!tsearch(ref, &p->tree, compare))
		die("out of memory");
	return ref;
}

static bool is_since(const struct refs_then *p, const struct refd_change *c)
{
	if (c->record->lsn != p->point.lsn)
		return c->record->lsn > p->point.lsn;
	return p->point.nr && c->nr > p->point.nr;
}

void refs_then_add(struct refs_then *p, const struct refd_change *c)
{
	struct ref_then *ref;

	if (c->status != REFD_OK)
		return;
	ref = get(p, c->name);
	if (c->target || !c->has_old || !c->has_new)
		ref->is_symbolic = true;
	if (!is_since(p, c)) {
		ref->has_before = true;
		ref->before = c->new_oid;
	} else if (!ref->has_since) {
		ref->has_since = true;
		ref->at = c->old_oid;
	}
	ref->last = c->new_oid;
}

static void keep(void *ref)
{
	(void)ref; /* owned by the array */
}

void refs_then_done(struct refs_then *p)
{
	size_t i;

	tdestroy(p->tree, keep);
	for (i = 0; i < p->nr; i++) {
		free(p->refs[i]->name);
		free(p->refs[i]);
	}
	free(p->refs);
	memset(p, 0, sizeof(*p));
}
