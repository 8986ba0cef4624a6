/*
 * The refs or the logs of one table, in order of their keys.
 *
 * An iterator belongs to one thread, every call may block, and nothing logs.
 * Results as in reftable_table.h.
 */
#ifndef STORE_REFTABLE_ITERATOR_H
#define STORE_REFTABLE_ITERATOR_H

#include "daemon/store/tables/format/reftable_table.h"

/* Zero-initialised, except for the budget, is empty. May be used for one table
 * after the other. */
struct reftable_iterator {
	const struct reftable_table *table; /* borrowed */
	enum reftable_section section;      /* refs or logs */
	struct reftable_block block;
	struct reftable_cursor cursor;
	bool is_ready; /* the cursor has a record that was not returned */
	bool is_ended;
	struct reftable_budget *budget; /* borrowed; set by the caller */
	/* The cursor has the first record with SOUGHT or a greater key, or no
	 * record follows. */
	bool is_sought;
	uint8_t sought[REFTABLE_KEY_MAX];
	size_t sought_len;
};

/* Puts the iterator before the first record of SECTION with KEY or a greater
 * key. An empty key is before all records. The iterator stays at the found
 * record, so a search for keys in ascending order reads every block once. */
int reftable_iterator_seek(struct reftable_iterator *it,
    const struct reftable_table *table, enum reftable_section section,
    const uint8_t *key, size_t key_len, struct reftable_fault *fault);
/* 1 if it->cursor.record is the next record, until the next call; 0 at the
 * end. */
int reftable_iterator_next(struct reftable_iterator *it,
    struct reftable_fault *fault);
void reftable_iterator_done(struct reftable_iterator *it);

#endif
