#include "client/restore/former.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/cli.h"

static int compare(const void *a, const void *b)
{
	const struct former_ref *x = a, *y = b;

	return strcmp(x->name, y->name);
}

const struct former_ref *former_find(const struct former *p, const char *name)
{
	struct former_ref key = { .name = (char *)name };
	void *const *found = tfind(&key, &p->tree, compare);

	return found ? *found : NULL;
}

static struct former_ref *get(struct former *p, const char *name)
{
	struct former_ref *ref = (struct former_ref *)former_find(p, name);

	if (ref)
		return ref;
	ref = xcalloc(1, sizeof(*ref));
	ref->name = xstrdup(name);
	if (p->nr == p->size) {
		p->size = p->size ? 2 * p->size : 64;
		p->refs = xrealloc(p->refs, p->size * sizeof(*p->refs));
	}
	p->refs[p->nr++] = ref;
	if (!tsearch(ref, &p->tree, compare))
		die("out of memory");
	return ref;
}

static bool is_since(const struct former *p, const struct refd_change *c)
{
	if (c->record->lsn != p->moment.lsn)
		return c->record->lsn > p->moment.lsn;
	return p->moment.nr && c->nr > p->moment.nr;
}

void former_add(struct former *p, const struct refd_change *c)
{
	struct former_ref *ref;

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
	(void)ref; /* the array's */
}

void former_done(struct former *p)
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
