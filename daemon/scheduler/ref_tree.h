/*
 * The tree of ref names, for ref_queue.c. Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_REF_TREE_H
#define SCHEDULER_REF_TREE_H

#include "daemon/scheduler/ref_queue.h"

enum name_place {
	NAME_IDLE,
	NAME_UP,      /* in up_of->up */
	NAME_BLOCKED, /* in blocked_by->blocked */
	NAME_ASLEEP,  /* in names.asleep */
	NAME_HELD     /* the first update is in a batch; see is_held() */
};

/* One component of a name. The path from the root to this component is the
 * name. The parent of a root is NULL, and the component of a root is the key of
 * its repository. */
struct ref_queue {
	struct txn_update *first, *last; /* waiting updates, in arrival order */
	size_t nr_busy_below;            /* names below with waiting updates */
	/* arrival + 1 of the last entry that added a name below; 0: none */
	uint64_t came_by;
	int64_t rest_until_ns;

	enum name_place place;
	struct entry *up_of;
	struct ref_queue *blocked_by;
	struct ref_queue *next, *prev; /* in up_of->up or blocked_by->blocked */
	struct heap_link wake;

	struct ref_queue *blocked; /* names that are blocked by this name */
	struct ref_queue *children, *next_child, *prev_child;

	/* The key; component is not terminated. */
	struct ref_queue *parent;
	uint32_t hash;
	uint32_t len; /* of the component */
	char component[];
};

/* Returns the name TEXT of repository REPO_KEY, which is made if missing. NULL:
 * out of memory. */
struct ref_queue *ref_tree_get(struct ref_queues *ns, uint64_t repo_key,
    const char *text);
/* Frees N, and the names above N, if they are unused. */
void ref_tree_drop_unused(struct ref_queues *ns, struct ref_queue *n);
/* The next name below TOP with waiting updates, after N; N is TOP for the first
 * name. Depth first. NULL: no more. */
struct ref_queue *ref_tree_next_below(const struct ref_queue *top,
    struct ref_queue *n);

#endif
