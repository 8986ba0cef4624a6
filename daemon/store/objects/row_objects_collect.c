/*
 * The happy path: the walk goes from the new values to objects that other nodes
 * have. All objects on the way are collected.
 *
 * A new tree is compared with its bases: the trees at the same path in the
 * parents of the commit. Other nodes have all that a base names, or get it with
 * the row. So most entries of a tree need no further look.
 *
 * Failures: nothing is collected.
 */
#include "daemon/store/objects/row_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/object_links.h"

#define PARENTS 8 /* of a commit */
#define BASES   PARENTS

struct bases {
	struct refd_oid oids[BASES];
	size_t nr;
};

struct item {
	struct refd_oid oid;
	struct object_content object;
	struct bases bases; /* of a tree */
};

struct object_walk {
	const struct row_objects_need *need;
	int64_t until_ns;
	struct item items[ROW_OBJECTS_NR];
	size_t nr, bytes;
	struct bases roots; /* of commits that other nodes have */
	struct row_ancestor ancestors[ROW_OBJECTS_ANCESTORS];
	size_t nr_ancestors;
};

/* ---- objects ---- */

static const struct item *find(const struct object_walk *w,
    const struct refd_oid *oid)
{
	size_t i;

	for (i = 0; i < w->nr; i++)
		if (refd_oid_eq(&w->items[i].oid, oid))
			return &w->items[i];
	return NULL;
}

static int not_possible(int r)
{
	return r < 0 && r != -ENOMEM ? 1 : r;
}

static int read_object(const struct object_walk *w, const struct refd_oid *oid,
    size_t max, struct object_content *out)
{
	if (SYS(w->need->sys, now_mono) > w->until_ns)
		return 1;
	return not_possible(odb_read(w->need->odb, oid, max, out));
}

/* Other nodes must get OID, unless they have it. */
static int want(struct object_walk *w, const struct refd_oid *oid,
    const struct bases *bases)
{
	struct item *item = &w->items[w->nr];
	int r;

	if (refd_oid_is_null(oid))
		return 1;

	if (w->need->is_known(w->need->arg, oid) || find(w, oid) != NULL)
		return 0;
	if (w->nr == ROW_OBJECTS_NR)
		return 1;
	*item = (struct item){ .oid = *oid, .bases = *bases };
	r = read_object(w, oid, ROW_OBJECTS_BYTES - w->bytes, &item->object);
	if (r != 0)
		return r;
	w->bytes += item->object.len;
	w->nr++;
	return 0;
}

/* The same, but OID must have the type TYPE. A value that other nodes have was
 * checked when it was new, so only a collected object is checked. */
static int want_type(struct object_walk *w, const struct refd_oid *oid,
    enum object_type type, const struct bases *bases)
{
	const struct item *item;
	int r = want(w, oid, bases);

	item = r == 0 ? find(w, oid) : NULL;
	return item != NULL && item->object.type != type ? 1 : r;
}

/* ---- trees to compare with ---- */

struct base {
	struct object_content tree;
	struct object_link *links; /* owned, by id */
	size_t nr, size;
};

static int compare_links(const void *va, const void *vb)
{
	const struct object_link *a = va, *b = vb;

	if (a->is_tree != b->is_tree)
		return a->is_tree ? 1 : -1;
	return memcmp(a->oid.bytes, b->oid.bytes, sizeof(a->oid.bytes));
}

static int add_link(void *arg, const struct object_link *link)
{
	struct base *base = arg;
	struct object_link *grown;

	if (base->nr == base->size) {
		base->size = base->size > 0 ? 2 * base->size : 64;
		grown = realloc(base->links, base->size * sizeof(*base->links));
		if (grown == NULL)
			return -ENOMEM;
		base->links = grown;
	}
	base->links[base->nr++] = *link;
	return 0;
}

/* Copies a collected object, or reads any other object. */
static int read_again(struct object_walk *w, const struct refd_oid *oid,
    struct object_content *out)
{
	const struct item *item = find(w, oid);

	if (item == NULL)
		return read_object(w, oid, ROW_OBJECTS_TREE, out);
	*out = item->object;
	out->data = malloc(out->len + 1);
	if (out->data == NULL)
		return -ENOMEM;
	memcpy(out->data, item->object.data, out->len);
	return 0;
}

static void base_done(struct base *base)
{
	free(base->tree.data);
	free(base->links);
}

static int base_init(struct base *base, struct object_walk *w,
    const struct refd_oid *oid)
{
	int r;

	*base = (struct base){ .nr = 0 };
	r = read_again(w, oid, &base->tree);
	if (r != 0)
		return r;
	if (base->tree.type != OBJECT_TREE)
		return 1;
	r = object_links_each(base->tree.type, base->tree.data, base->tree.len,
	    w->need->format, add_link, base);
	if (base->nr > 0)
		qsort(base->links, base->nr, sizeof(*base->links),
		    compare_links);
	return not_possible(r);
}

static bool base_has(const struct base *base, const struct object_link *link)
{
	return base->nr > 0 &&
	    bsearch(link, base->links, base->nr, sizeof(*base->links),
		compare_links) != NULL;
}

/* The tree with the name of LINK is a base of LINK. */
static void add_base_of(const struct base *base, const struct object_link *link,
    struct bases *bases)
{
	size_t i;

	for (i = 0; i < base->nr; i++)
		if (base->links[i].is_tree &&
		    strcmp(base->links[i].name, link->name) == 0) {
			bases->oids[bases->nr++] = base->links[i].oid;
			return;
		}
}

/* ---- the walk ---- */

struct tree_walk {
	struct object_walk *w;
	struct base bases[BASES];
	size_t nr;
};

static int visit_entry(void *arg, const struct object_link *link)
{
	struct tree_walk *t = arg;
	struct bases bases = { .nr = 0 };
	size_t i;

	if (SYS(t->w->need->sys, now_mono) > t->w->until_ns)
		return 1;
	for (i = 0; i < t->nr; i++)
		if (base_has(&t->bases[i], link))
			return 0;
	for (i = 0; i < t->nr && link->is_tree; i++)
		add_base_of(&t->bases[i], link, &bases);
	return want_type(t->w, &link->oid,
	    link->is_tree ? OBJECT_TREE : OBJECT_BLOB, &bases);
}

static int visit_tree(struct object_walk *w, const struct item *item)
{
	struct tree_walk t = { .w = w };
	int r = 0;

	for (; r == 0 && t.nr < item->bases.nr; t.nr++)
		r = base_init(&t.bases[t.nr], w, &item->bases.oids[t.nr]);
	if (r == 0)
		r = object_links_each(item->object.type, item->object.data,
		    item->object.len, w->need->format, visit_entry, &t);
	while (t.nr > 0)
		base_done(&t.bases[--t.nr]);
	return r;
}

static int take_tree(void *arg, const struct object_link *link)
{
	struct refd_oid *tree = arg;

	*tree = link->oid;
	return 1;
}

static bool has_base(const struct bases *bases, const struct refd_oid *oid)
{
	size_t i;

	for (i = 0; i < bases->nr; i++)
		if (refd_oid_eq(&bases->oids[i], oid))
			return true;
	return false;
}

/* The tree of a commit that other nodes have is a base of all root trees. */
static int add_root(struct object_walk *w, const struct refd_oid *commit)
{
	struct object_content c = { .data = NULL };
	struct refd_oid tree;
	int r = read_object(w, commit, ROW_OBJECTS_TREE, &c);

	if (r == 0 &&
	    (c.type != OBJECT_COMMIT ||
		object_links_each(c.type, c.data, c.len, w->need->format,
		    take_tree, &tree) != 1))
		r = 1;
	free(c.data);
	if (r != 0 || has_base(&w->roots, &tree))
		return r;
	if (w->roots.nr == BASES)
		return 1;
	w->roots.oids[w->roots.nr++] = tree;
	return 0;
}

static int visit_commit_link(void *arg, const struct object_link *link)
{
	const struct bases none = { .nr = 0 };
	struct object_walk *w = arg;
	int r;

	if (link->kind != OBJECT_LINK_PARENT)
		return 0;
	r = want_type(w, &link->oid, OBJECT_COMMIT, &none);
	return r == 0 && find(w, &link->oid) == NULL ? add_root(w, &link->oid) :
						       r;
}

static int visit_tag_link(void *arg, const struct object_link *link)
{
	const struct bases none = { .nr = 0 };

	return want(arg, &link->oid, &none);
}

/* First all commits and tags, so that ROOTS is whole. */
static int visit(struct object_walk *w, const struct item *item)
{
	if (item->object.type == OBJECT_TREE)
		return 0;
	return object_links_each(item->object.type, item->object.data,
	    item->object.len, w->need->format,
	    item->object.type == OBJECT_COMMIT ? visit_commit_link :
						 visit_tag_link,
	    w);
}

static int visit_root(struct object_walk *w, const struct item *item)
{
	struct refd_oid tree;

	if (item->object.type == OBJECT_TREE)
		return visit_tree(w, item);
	if (item->object.type != OBJECT_COMMIT)
		return 0;
	if (object_links_each(item->object.type, item->object.data,
		item->object.len, w->need->format, take_tree, &tree) != 1)
		return 1;
	return has_base(&w->roots, &tree) ?
	    0 :
	    want_type(w, &tree, OBJECT_TREE, &w->roots);
}

/* ---- ancestors ---- */

struct ancestors {
	struct object_walk *w;
	size_t nth; /* of the tip */
	bool is_wanted[ROW_OBJECTS_NR], is_done[ROW_OBJECTS_NR];
};

static void note_ancestor(struct object_walk *to, const struct refd_oid *oid,
    size_t nth)
{
	size_t i = 0;

	while (i < to->nr_ancestors && !refd_oid_eq(&to->ancestors[i].oid, oid))
		i++;
	/* The value counts as left behind. */
	if (i == ROW_OBJECTS_ANCESTORS)
		return;
	if (i == to->nr_ancestors)
		to->ancestors[to->nr_ancestors++] =
		    (struct row_ancestor){ .oid = *oid };
	to->ancestors[i].tips |= UINT64_C(1) << nth;
}

static void take_ancestor(struct ancestors *a, const struct refd_oid *oid)
{
	const struct item *item = find(a->w, oid);

	note_ancestor(a->w, oid, a->nth);
	if (item != NULL && item->object.type == OBJECT_COMMIT)
		a->is_wanted[item - a->w->items] = true;
}

static int visit_ancestor(void *arg, const struct object_link *link)
{
	if (link->kind == OBJECT_LINK_PARENT)
		take_ancestor(arg, &link->oid);
	return 0;
}

/* The tip NTH, the collected commits behind it, and their parents. */
static void note_ancestors(struct object_walk *w, size_t nth)
{
	struct ancestors a = { .w = w, .nth = nth };
	const struct item *item;
	size_t i = 0;

	take_ancestor(&a, &w->need->tips[nth]);
	while (i < w->nr) {
		item = &w->items[i];
		if (!a.is_wanted[i] || a.is_done[i]) {
			i++;
			continue;
		}
		a.is_done[i] = true;
		object_links_each(item->object.type, item->object.data,
		    item->object.len, w->need->format, visit_ancestor, &a);
		i = 0;
	}
}

/* Puts all objects of ITEMS into bytes, from the last item to the first. A
 * reader needs an object before the objects that refer to it, and in ITEMS such
 * an object comes later. */
static int put_all(const struct object_walk *w, struct row_objects **objects)
{
	const struct item *item;
	uint8_t *p;
	size_t i;

	*objects = row_objects_new(w->nr * ROW_OBJECTS_HEAD + w->bytes,
	    w->need->nr_rows, w->need->nr_tips, w->nr_ancestors);
	if (*objects == NULL)
		return 1;
	memcpy((*objects)->tips, w->need->tips,
	    w->need->nr_tips * sizeof(*w->need->tips));
	memcpy((*objects)->ancestors, w->ancestors,
	    w->nr_ancestors * sizeof(*w->ancestors));
	p = (*objects)->bytes;
	for (item = w->items + w->nr; item-- > w->items;) {
		*p++ = (uint8_t)item->object.type;
		for (i = 0; i < 4; i++)
			*p++ = (uint8_t)(item->object.len >> (8 * i));
		memcpy(p, item->object.data, item->object.len);
		p += item->object.len;
	}
	return 0;
}

int row_objects_collect(const struct row_objects_need *need,
    struct row_objects **objects)
{
	const struct bases none = { .nr = 0 };
	struct object_walk *w = calloc(1, sizeof(*w));
	size_t i;
	int r = 0;

	*objects = NULL;
	if (w == NULL)
		return -ENOMEM;
	w->need = need;
	w->until_ns = SYS(need->sys, now_mono) + ROW_OBJECTS_NS;
	for (i = 0; r == 0 && i < need->nr_tips; i++)
		r = want(w, &need->tips[i], &none);
	for (i = 0; r == 0 && i < w->nr; i++)
		r = visit(w, &w->items[i]);
	for (i = 0; r == 0 && i < w->nr; i++)
		r = visit_root(w, &w->items[i]);
	for (i = 0; r == 0 && i < need->nr_tips; i++)
		note_ancestors(w, i);
	if (r == 0)
		r = put_all(w, objects);
	while (w->nr > 0)
		free(w->items[--w->nr].object.data);
	free(w);
	return not_possible(r);
}
