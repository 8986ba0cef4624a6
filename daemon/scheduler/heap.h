/*
 * A pairing heap whose links lie in the things it holds, so that adding to
 * it can't fail. The least key first; equal keys in no order.
 *
 * Adding is O(1), removing O(log n) amortised. One thread at a time.
 * (Fredman, Sedgewick, Sleator, Tarjan: The pairing heap, 1986.)
 */
#ifndef SCHEDULER_HEAP_H
#define SCHEDULER_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_link {
	int64_t key;
	struct heap_link *child, *next;
	struct heap_link *prev; /* the one before, or the parent */
};

/* Zero-initialised is empty. */
struct heap {
	struct heap_link *root;
};

void heap_add(struct heap *h, struct heap_link *l, int64_t key);
/* L must be in H. */
void heap_remove(struct heap *h, struct heap_link *l);

/* The thing that a link is the MEMBER of. */
#define HEAP_ITEM(link, type, member)                                          \
	((type *)(void *)((char *)(link) - offsetof(type, member)))

#endif
