/*
 * A hash table of the components of ref names, for ref_tree.c. Loop thread
 * only; nothing blocks.
 *
 * A slot has the hash beside the pointer, so a look-up reads no other component
 * on its way. uthash is not used, because its chains took most of the time of a
 * transaction's queueing.
 */
#ifndef SCHEDULER_REF_TABLE_H
#define SCHEDULER_REF_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct ref_queue;

struct ref_slot {
	struct ref_queue *n; /* NULL: empty */
	uint32_t hash;
};

/* Empty if zero-initialised. */
struct ref_table {
	struct ref_slot *slots; /* owned */
	size_t nr, size;        /* SIZE is 0 or a power of two */
};

/* The child of PARENT with the component of LEN bytes, or NULL. */
struct ref_queue *ref_table_find(const struct ref_table *t, uint32_t hash,
    const struct ref_queue *parent, const char *component, size_t len);
/* Adds N, which the table lacks. 0 or -ENOMEM. */
int ref_table_add(struct ref_table *t, uint32_t hash, struct ref_queue *n);
/* Removes N, which the table has. */
void ref_table_remove(struct ref_table *t, uint32_t hash,
    const struct ref_queue *n);
/* Frees the table, and the components in it. */
void ref_table_done(struct ref_table *t);

#endif
