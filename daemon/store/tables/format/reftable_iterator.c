/*
 * Happy path:
 *	seek	from the root of the index down to a block; without an index,
 *		block by block
 *	next	the records of the block, then the next block
 *
 * Failure modes:
 *	an index that leads forward: refused, so that no circle is possible
 *	a section that ends in an unexpected block: refused, because its refs
 *	would be missing
 */
#include "daemon/store/tables/format/reftable_iterator.h"

#include <errno.h>
#include <string.h>

/* Git's largest index has far fewer levels. */
#define LEVELS_MAX 32

static int bad(const struct reftable_iterator *it, const char *why,
    struct reftable_fault *fault)
{
	return reftable_table_bad(it->table, it->block.position, why, fault);
}

static int read_block(struct reftable_iterator *it, uint64_t at,
    struct reftable_fault *fault)
{
	int r =
	    reftable_table_read(it->table, at, &it->block, it->budget, fault);

	if (r == 0)
		reftable_block_first(&it->block, &it->cursor);
	return r;
}

/* A call with the result R has passed records, and this function takes them
 * from the budget. Reading is not all of the work, because a block in memory
 * may be searched at every look-up. */
static int pay(struct reftable_iterator *it, int r, const char *why,
    struct reftable_fault *fault)
{
	const uint64_t passed = it->cursor.passed;

	it->cursor.passed = 0;
	if (r < 0)
		return bad(it, why, fault);
	return reftable_table_spend(it->table, it->block.position, it->budget,
		   passed, fault) < 0 ?
	    -EFBIG :
	    r;
}

static int next_in_block(struct reftable_iterator *it,
    struct reftable_fault *fault)
{
	const char *why = NULL;
	int r = reftable_block_next(&it->block, &it->table->context,
	    &it->cursor, &why);

	return pay(it, r, why, fault);
}

static int seek_in_block(struct reftable_iterator *it, const uint8_t *key,
    size_t key_len, struct reftable_fault *fault)
{
	const char *why = NULL;
	int r = reftable_block_seek(&it->block, &it->table->context, key,
	    key_len, &it->cursor, &why);

	return pay(it, r, why, fault);
}

/* Reads the block behind the present block. 0 if the section has ended. */
static int next_block(struct reftable_iterator *it, uint64_t index,
    struct reftable_fault *fault)
{
	const struct reftable_table *t = it->table;
	const enum reftable_section section = it->block.section;
	const uint64_t at = it->block.next;
	int r;

	if (at >= t->end || at == t->objects || at == t->logs)
		return 0;
	r = read_block(it, at, fault);
	if (r < 0)
		return r;
	if (it->block.section == section)
		return 1;
	if (section == REFTABLE_INDEX ||
	    (it->block.section == REFTABLE_INDEX && index != 0))
		return 0;
	return bad(it, "a block of another type is among blocks", fault);
}

/* From block to block, up to KEY or a greater key. */
static int seek_linear(struct reftable_iterator *it, const uint8_t *key,
    size_t key_len, uint64_t index, struct reftable_fault *fault)
{
	int r;

	do {
		r = seek_in_block(it, key, key_len, fault);
		if (r != 0)
			return r;
		r = next_block(it, index, fault);
	} while (r > 0);
	return r;
}

/* From a block of the root down to a block of the section. */
static int seek_index(struct reftable_iterator *it, const uint8_t *key,
    size_t key_len, uint64_t index, struct reftable_fault *fault)
{
	unsigned levels = 0;
	uint64_t at;
	int r;

	/* The root may have several blocks, so the search goes from block to
	 * block. */
	r = seek_linear(it, key, key_len, index, fault);
	while (r > 0 && it->block.section == REFTABLE_INDEX) {
		at = it->cursor.record.position;
		if (at >= it->block.position || ++levels > LEVELS_MAX)
			return bad(it, "an index leads to a wrong block",
			    fault);
		r = read_block(it, at, fault);
		if (r == 0)
			r = seek_in_block(it, key, key_len, fault);
		if (r == 0)
			return bad(it, "an index does not fit its block",
			    fault);
	}
	if (r > 0 && it->block.section != it->section)
		return bad(it, "an index leads to a block of another type",
		    fault);
	return r;
}

/* The position of the section's first block, or false if there is none. */
static bool section_start(const struct reftable_table *t,
    enum reftable_section section, uint64_t *at)
{
	*at = t->first == section ? 0 : t->logs;
	return t->first == section || (section == REFTABLE_LOGS && t->logs > 0);
}

/* Searches in the present block. 0 if the record is elsewhere. */
static int seek_here(struct reftable_iterator *it, const uint8_t *key,
    size_t key_len, struct reftable_fault *fault)
{
	if (!it->is_sought ||
	    reftable_block_compare(it->sought, it->sought_len, key, key_len) >
		0)
		return 0;
	if (it->is_ended)
		return 1;
	if (reftable_block_compare(it->cursor.key, it->cursor.key_len, key,
		key_len) >= 0)
		return 1;
	return seek_in_block(it, key, key_len, fault);
}

static int seek_from_start(struct reftable_iterator *it, const uint8_t *key,
    size_t key_len, struct reftable_fault *fault)
{
	const struct reftable_table *table = it->table;
	const enum reftable_section section = it->section;
	const uint64_t index =
	    section == REFTABLE_REFS ? table->ref_index : table->log_index;
	uint64_t at;
	int r;

	it->is_ended = true;
	if (!section_start(table, section, &at))
		return 0;
	if (index != 0 && key_len > 0)
		at = index;
	r = read_block(it, at, fault);
	if (r < 0)
		return r;
	if (it->block.section !=
	    (at == index && index != 0 ? REFTABLE_INDEX : section))
		return bad(it, "a section begins with a block of another type",
		    fault);
	if (at == index && index != 0)
		r = seek_index(it, key, key_len, index, fault);
	else
		r = seek_linear(it, key, key_len, index, fault);
	it->is_ended = r <= 0;
	return r;
}

int reftable_iterator_seek(struct reftable_iterator *it,
    const struct reftable_table *table, enum reftable_section section,
    const uint8_t *key, size_t key_len, struct reftable_fault *fault)
{
	int r;

	if (it->table != table || it->section != section)
		it->is_sought = false;
	it->table = table;
	it->section = section;
	r = seek_here(it, key, key_len, fault);
	if (r == 0)
		r = seek_from_start(it, key, key_len, fault);
	it->is_sought = r >= 0 && key_len <= sizeof(it->sought);
	it->is_ready = r > 0 && !it->is_ended;
	if (r < 0) {
		it->is_ended = true;
		return r;
	}
	if (it->is_sought) {
		memcpy(it->sought, key, key_len);
		it->sought_len = key_len;
	}
	return 0;
}

int reftable_iterator_next(struct reftable_iterator *it,
    struct reftable_fault *fault)
{
	const uint64_t index = it->section == REFTABLE_REFS ?
	    it->table->ref_index :
	    it->table->log_index;
	int r = 0;

	if (it->is_ready) {
		it->is_ready = false;
		return 1;
	}
	if (!it->is_ended)
		it->is_sought = false;
	while (!it->is_ended) {
		r = next_in_block(it, fault);
		if (r > 0)
			return r;
		if (r == 0)
			r = next_block(it, index, fault);
		it->is_ended = r <= 0;
	}
	return r;
}

void reftable_iterator_done(struct reftable_iterator *it)
{
	if (it->budget != NULL)
		it->budget->memory += it->block.data_size + it->block.raw_size;
	reftable_block_done(&it->block);
	memset(it, 0, sizeof(*it));
}
