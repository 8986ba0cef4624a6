/*
 * The tree of ref names, for ref_queue.c. Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_REF_TREE_H
#define SCHEDULER_REF_TREE_H

#include "daemon/scheduler/ref_queue.h"

enum name_place {
	NAME_IDLE,
	NAME_UP,      /* in a list of up_of */
	NAME_BLOCKED, /* in blocked_by->blocked */
	NAME_ASLEEP,  /* in ref_queues.asleep */
	NAME_HELD     /* the first update is in a batch; see is_held() */
};

/* One component of a name. The path from the root to this component is the
 * name. The parent of a root is NULL, and the component of a root is the key of
 * its repository. */
struct ref_queue {
	struct txn_update *first, *last; /* waiting updates, in arrival order */
	/* arrival + 1 of the last entry that added a name below; 0: none */
	uint64_t came_by;
	int64_t rest_until_ns;

	enum name_place place;
	struct entry *up_of;
	struct ref_queue *blocked_by;
	struct ref_queue *next, *prev; /* in the list of up_of */
	/* In asleep, by time. Or in blocked_by->blocked, by an arrival: updates
	 * that arrived before go before the first update of this name. */
	struct heap_link link;

	struct heap blocked; /* names that are blocked by this name */
	bool is_releasing;   /* in ref_queues.releasing */
	struct ref_queue *next_releasing, *prev_releasing;

	/* The children with an update at them or below, by the arrival of the
	 * oldest of these updates. */
	struct heap below;
	struct heap_link in_below; /* of the parent */
	bool is_in_below;
	size_t nr_children;

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
/* The first update of N has changed. */
void ref_tree_note_first(struct ref_queue *n);
/* A name below N whose first update arrived before BEFORE; NULL: none. */
struct ref_queue *ref_tree_older_below(const struct ref_queue *n,
    uint64_t before);

#endif
