/*
 * Happy path: the sections follow each other in the file, each with the levels
 * of its index behind. A record of an index has the position and the last key
 * of a block below. The last level begins where the footer says.
 *
 * Failures: the first fault ends the check.
 */
#include "daemon/store/tables/format/reftable_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct table_check {
	const struct reftable_table *table;
	struct reftable_budget *budget;
	struct reftable_layout *layout;
	struct reftable_fault *fault;
	struct reftable_block block; /* at AT */
	uint64_t at;
	int section; /* of the block; 0: the end of the file */
	struct reftable_cursor cursor, found;
	uint8_t last[REFTABLE_KEY_MAX];
	size_t last_len;
	struct reftable_block below; /* of the index being checked */
};

static int bad(const struct table_check *c, uint64_t at, const char *why)
{
	return reftable_table_bad(c->table, at, why, c->fault);
}

/* Reads the block at c->at. */
static int load(struct table_check *c)
{
	int r;

	c->section = 0;
	if (c->at >= c->table->end)
		return 0;
	r = reftable_table_read(c->table, c->at, &c->block, c->budget,
	    c->fault);
	if (r == 0)
		c->section = c->block.section;
	return r;
}

static int load_next(struct table_check *c)
{
	c->at = c->block.next;
	return load(c);
}

/* ---- records ---- */

/* The footer has one length for all abbreviated ids, so the keys of all objects
 * must have this length. */
static int check_object(struct table_check *c)
{
	const size_t len = c->cursor.key_len;

	if (c->layout->id_len == 0 && len <= REFTABLE_ID_MAX)
		c->layout->id_len = len;
	return len != c->layout->id_len ?
	    bad(c, c->at, "the id of an object has a wrong length") :
	    0;
}

/* Checks the record that began at AT. */
static int check_record(struct table_check *c, size_t at, size_t *nr_restarts)
{
	const struct reftable_block *block = &c->block;

	if (c->section == REFTABLE_OBJECTS && check_object(c) < 0)
		return -EBADMSG;
	if ((c->section == REFTABLE_REFS || c->section == REFTABLE_LOGS) &&
	    c->cursor.record.update_index > c->table->max_index)
		return bad(c, c->at, "an update index is above the largest");
	if (*nr_restarts == block->restarts ||
	    reftable_block_restart(block, *nr_restarts) != at)
		return 0;
	++*nr_restarts;
	/* The length of the prefix comes first, so this byte has to be zero. */
	return block->data[at] != 0 ?
	    bad(c, c->at, "the key at a restart point has a prefix") :
	    0;
}

/* Checks the records of the block, which follow the key c->last. */
static int check_block(struct table_check *c)
{
	struct reftable_cursor *cursor = &c->cursor;
	size_t at, nr_restarts = 0;
	bool is_first = true;
	const char *why;
	int r;

	reftable_block_first(&c->block, cursor);
	while (at = cursor->at,
	    (r = reftable_block_next(&c->block, &c->table->context, cursor,
		 &why)) > 0) {
		if (is_first && c->last_len > 0 &&
		    reftable_block_compare(cursor->key, cursor->key_len,
			c->last, c->last_len) <= 0)
			return bad(c, c->at, "the blocks are not in order");
		is_first = false;
		r = check_record(c, at, &nr_restarts);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return bad(c, c->at, why);
	if (is_first)
		return bad(c, c->at, "a block has no record");
	if (nr_restarts < c->block.restarts)
		return bad(c, c->at, "a restart point is not at a record");
	memcpy(c->last, cursor->key, cursor->key_len);
	c->last_len = cursor->key_len;
	return 0;
}

/* ---- indexes ---- */

/* Does the cursor's record describe the block at BELOW? */
static int check_entry(struct table_check *c, uint64_t below)
{
	struct reftable_cursor *last = &c->found;
	const char *why;
	int r;

	if (c->cursor.record.position != below)
		return bad(c, c->at, "an index has a wrong position");
	r = reftable_table_read(c->table, below, &c->below, c->budget,
	    c->fault);
	if (r < 0)
		return r;
	reftable_block_first(&c->below, last);
	while ((r = reftable_block_next(&c->below, &c->table->context, last,
		    &why)) > 0)
		continue;
	if (r < 0)
		return bad(c, below, why);
	if (reftable_block_compare(c->cursor.key, c->cursor.key_len, last->key,
		last->key_len) != 0)
		return bad(c, c->at, "an index has a wrong key");
	return 0;
}

/* Checks the blocks of a level that index the blocks from BELOW to END. */
static int check_level(struct table_check *c, uint64_t below, uint64_t end)
{
	const char *why;
	int r;

	while (below < end) {
		if (c->section != REFTABLE_INDEX)
			return bad(c, c->at, "an index ends too early");
		reftable_block_first(&c->block, &c->cursor);
		while ((r = reftable_block_next(&c->block, &c->table->context,
			    &c->cursor, &why)) > 0) {
			if (below >= end)
				return bad(c, c->at, "an index is too long");
			r = check_entry(c, below);
			if (r < 0)
				return r;
			below = c->below.next;
		}
		if (r < 0)
			return bad(c, c->at, why);
		c->last_len = 0;
		r = check_block(c);
		if (r == 0)
			r = load_next(c);
		if (r < 0)
			return r;
	}
	return 0;
}

/* *INDEX: the position of the highest level; 0: no index. */
static int check_index(struct table_check *c, uint64_t start, uint64_t *index)
{
	uint64_t below = start, end;
	int r = 0;

	*index = 0;
	while (r == 0 && c->section == REFTABLE_INDEX) {
		end = *index = c->at;
		r = check_level(c, below, end);
		below = end;
	}
	return r;
}

/* ---- sections ---- */

/* *AT and *INDEX: the positions for the footer; 0: none. */
static int check_section(struct table_check *c, enum reftable_section section,
    uint64_t *at, uint64_t *index)
{
	uint64_t nr = 0;
	int r = 0;

	*at = *index = 0;
	if (c->section != (int)section)
		return 0;
	*at = c->at;
	c->last_len = 0;
	c->layout->last = section;
	for (; r == 0 && c->section == (int)section; nr++) {
		r = check_block(c);
		if (r == 0)
			r = load_next(c);
	}
	if (r == 0)
		r = check_index(c, *at, index);
	if (*index != 0)
		c->layout->last = REFTABLE_INDEX;
	else if (nr > REFTABLE_BLOCKS_WITHOUT_INDEX)
		c->layout->lacks_index = true;
	return r;
}

static int check_sections(struct table_check *c)
{
	struct reftable_layout *l = c->layout;
	uint64_t refs;
	int r;

	if (c->table->first == 0)
		c->at = c->table->end;
	r = load(c);
	if (r == 0)
		r = check_section(c, REFTABLE_REFS, &refs, &l->ref_index);
	if (r == 0)
		r = check_section(c, REFTABLE_OBJECTS, &l->objects,
		    &l->object_index);
	if (r == 0)
		r = check_section(c, REFTABLE_LOGS, &l->logs, &l->log_index);
	if (r == 0 && c->section != 0)
		r = bad(c, c->at, "a section is in a wrong place");
	return r;
}

int reftable_check_layout(const struct reftable_table *t,
    struct reftable_budget *budget, struct reftable_layout *layout,
    struct reftable_fault *fault)
{
	struct table_check *c = calloc(1, sizeof(*c));
	int r;

	memset(layout, 0, sizeof(*layout));
	if (c == NULL)
		return -ENOMEM;
	c->table = t;
	c->budget = budget;
	c->layout = layout;
	c->fault = fault;
	r = check_sections(c);
	budget->memory += c->block.data_size + c->block.raw_size;
	budget->memory += c->below.data_size + c->below.raw_size;
	reftable_block_done(&c->block);
	reftable_block_done(&c->below);
	free(c);
	return r;
}

int reftable_check(const struct reftable_table *t,
    struct reftable_budget *budget, struct reftable_fault *fault)
{
	struct reftable_layout l;
	int r = reftable_check_layout(t, budget, &l, fault);

	if (r == 0 &&
	    (l.ref_index != t->ref_index || l.objects != t->objects ||
		l.object_index != t->object_index || l.logs != t->logs ||
		l.log_index != t->log_index))
		r = reftable_table_bad(t, t->end,
		    "the footer has a wrong position of a section", fault);
	return r;
}
