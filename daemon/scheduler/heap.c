/*
 * Happy path:
 *	add	the new item melds with the root: the greater key becomes the
 *		first child of the lesser. An item with the key of the item
 *		added before becomes the child of that item: the root would
 *		get all equal items as children, and its removal would meld
 *		all of them at once
 *	remove	its children are melded in pairs from the left, the pairs
 *		together from the right, and the result with the root
 * Failure modes: none; nothing is allocated, nothing recurses.
 */
#include "daemon/scheduler/heap.h"

/* Both are roots: no siblings, no parent. Either may be NULL. A may be below a
 * root if the keys are equal. */
static struct heap_link *meld(struct heap_link *a, struct heap_link *b)
{
	struct heap_link *t;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (b->key < a->key) {
		t = a;
		a = b;
		b = t;
	}
	b->prev = a;
	b->next = a->child;
	if (a->child != NULL)
		a->child->prev = b;
	a->child = b;
	return a;
}

static void make_root(struct heap_link *l)
{
	if (l != NULL)
		l->next = l->prev = NULL;
}

static struct heap_link *meld_siblings(struct heap_link *first)
{
	struct heap_link *a, *b, *pairs = NULL, *all = NULL;

	while ((a = first) != NULL) {
		b = a->next;
		first = b != NULL ? b->next : NULL;
		make_root(a);
		make_root(b);
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while ((a = pairs) != NULL) {
		pairs = a->next;
		make_root(a);
		all = meld(all, a);
	}
	return all;
}

void heap_add(struct heap *h, struct heap_link *l, int64_t key)
{
	l->key = key;
	l->child = NULL;
	make_root(l);
	if (h->latest != NULL && h->latest->key == key)
		meld(h->latest, l);
	else
		h->root = meld(h->root, l);
	h->latest = l;
}

void heap_remove(struct heap *h, struct heap_link *l)
{
	struct heap_link *below = meld_siblings(l->child);

	if (l == h->latest)
		h->latest = NULL;
	if (l == h->root) {
		h->root = below;
		return;
	}
	if (l->prev->child == l)
		l->prev->child = l->next;
	else
		l->prev->next = l->next;
	if (l->next != NULL)
		l->next->prev = l->prev;
	h->root = meld(h->root, below);
}
