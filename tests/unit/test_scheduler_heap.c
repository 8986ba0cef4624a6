/*
 * Proves that the heap returns keys in order after any insertions and removals,
 * also from its middle. A hundred thousand equal or sorted keys cause no
 * recursion. Equal keys do not gather below one item, whose removal would take
 * long.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "daemon/scheduler/heap.h"
#include "tests/lib/suite.h"

#define NR 100000

struct item {
	int pad;
	struct heap_link link;
	bool in;
};

static struct item items[NR];

static void drain(struct heap *h, size_t expected)
{
	int64_t last = INT64_MIN;
	struct item *it;
	size_t nr = 0;

	while (h->root != NULL) {
		it = HEAP_ITEM(h->root, struct item, link);
		ck_assert(it->in);
		ck_assert(it->link.key >= last);
		last = it->link.key;
		heap_remove(h, h->root);
		it->in = false;
		nr++;
	}
	ck_assert_uint_eq(nr, expected);
}

TEST(test_random_adds_and_removals, .times = 20)
{
	struct heap h = { 0 };
	struct item *it;
	size_t i, nr = 0;

	srandom((unsigned)_i + 1);
	for (i = 0; i < 20000; i++) {
		it = &items[random() % 500];
		if (it->in) {
			heap_remove(&h, &it->link);
			nr--;
		} else {
			heap_add(&h, &it->link, random() % 100);
			nr++;
		}
		it->in = !it->in;
		if (h.root != NULL && random() % 3 == 0) {
			HEAP_ITEM(h.root, struct item, link)->in = false;
			heap_remove(&h, h.root);
			nr--;
		}
	}
	drain(&h, nr);
}

TEST(test_many_in_order, .times = 3)
{
	static const int64_t step[] = { 0, 1, -1 };
	struct heap h = { 0 };
	size_t i;

	for (i = 0; i < NR; i++) {
		heap_add(&h, &items[i].link, (int64_t)i * step[_i]);
		items[i].in = true;
	}
	drain(&h, NR);
}

TEST(test_equal_keys_form_a_chain)
{
	const struct heap_link *l;
	struct heap h = { 0 };
	size_t i, nr;

	for (i = 0; i < NR; i++) {
		heap_add(&h, &items[i].link, i > 0);
		items[i].in = true;
	}
	for (i = 0; i < NR; i++) {
		nr = 0;
		for (l = items[i].link.child; l != NULL; l = l->next)
			nr++;
		ck_assert_uint_le(nr, 1);
	}
	heap_remove(&h, &items[NR / 2].link);
	heap_remove(&h, &items[NR - 1].link);
	heap_add(&h, &items[NR / 2].link, 1);
	drain(&h, NR - 1);
}
