/*
 * A pairing heap. The links are members of the items, so adding cannot fail.
 * The item with the least key comes first; equal keys have no order.
 *
 * Adding is O(1), removing O(log n) amortised. Items with equal keys that are
 * added one after the other form a chain, so removing one of them is O(1).
 * Nothing is locked, so not for several threads at a time. (Fredman, Sedgewick,
 * Sleator, Tarjan: The pairing heap, 1986.)
 */
#ifndef SCHEDULER_HEAP_H
#define SCHEDULER_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_link {
	int64_t key;
	struct heap_link *child, *next;
	struct heap_link *prev; /* previous sibling, or the parent */
};

/* Empty if zero-initialised. */
struct heap {
	struct heap_link *root;
	struct heap_link *latest; /* added last; NULL: removed */
};

void heap_add(struct heap *h, struct heap_link *l, int64_t key);
/* L must be in H. */
void heap_remove(struct heap *h, struct heap_link *l);

/* The item whose MEMBER is the link. */
#define HEAP_ITEM(link, type, member)                                          \
	((type *)(void *)((char *)(link) - offsetof(type, member)))

#endif
