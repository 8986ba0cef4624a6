/*
 * Happy path: the header, records with growing keys, the restart points. A key
 * is stored as the length of the prefix that it shares with the key before, and
 * the rest. At a restart point the prefix is empty, so a search can begin
 * there.
 *
 * Failures: see reftable_block.h. Not every search needs all restart points, so
 * they are checked when they are used.
 */
#include "daemon/store/tables/format/reftable_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POINT_BYTES 3
#define COUNT_BYTES 2
#define TYPE_BITS   3

static int bad(const char **why, const char *text)
{
	*why = text;
	return -EBADMSG;
}

int reftable_block_init(struct reftable_block *block, size_t skip, size_t len,
    const char **why)
{
	if (len < skip + REFTABLE_BLOCK_LEAST)
		return bad(why, "a block is too short");
	block->section = (enum reftable_section)block->data[skip];
	block->restarts =
	    (size_t)reftable_record_get(block->data + len - COUNT_BYTES,
		COUNT_BYTES);
	block->first = skip + REFTABLE_BLOCK_HEADER;
	if (block->restarts == 0 ||
	    block->restarts * POINT_BYTES + COUNT_BYTES > len - block->first)
		return bad(why, "a block has a wrong number of restart points");
	block->end = len - COUNT_BYTES - block->restarts * POINT_BYTES;
	return 0;
}

void reftable_block_done(struct reftable_block *block)
{
	free(block->data);
	free(block->raw);
	memset(block, 0, sizeof(*block));
}

int reftable_block_compare(const uint8_t *a, size_t a_len, const uint8_t *b,
    size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

void reftable_block_first(const struct reftable_block *block,
    struct reftable_cursor *cursor)
{
	cursor->at = block->first;
	cursor->key_len = 0;
}

/* Decodes the key at the cursor. *AT: the value behind the key. */
static int next_key(const struct reftable_block *block,
    struct reftable_cursor *cursor, size_t *at, unsigned *type,
    const char **why)
{
	const uint8_t *p = block->data + cursor->at;
	size_t left = block->end - cursor->at, n;
	uint64_t prefix, suffix;

	n = reftable_record_get_varint(p, left, &prefix);
	p += n;
	left -= n;
	n = n > 0 ? reftable_record_get_varint(p, left, &suffix) : 0;
	p += n;
	left -= n;
	if (n == 0 || suffix >> TYPE_BITS > left)
		return bad(why, "a key is cut off");
	*type = suffix & ((1 << TYPE_BITS) - 1);
	suffix >>= TYPE_BITS;
	if (prefix > cursor->key_len)
		return bad(why, "a key has a wrong prefix");
	if (prefix + suffix > REFTABLE_KEY_MAX)
		return bad(why, "a name is too long for refd");
	if (cursor->key_len > 0 &&
	    reftable_block_compare(p, (size_t)suffix, cursor->key + prefix,
		cursor->key_len - (size_t)prefix) <= 0)
		return bad(why, "the records are not in order");
	memcpy(cursor->key + prefix, p, (size_t)suffix);
	cursor->key_len = (size_t)(prefix + suffix);
	cursor->key[cursor->key_len] = '\0';
	cursor->passed += cursor->key_len;
	*at = (size_t)(p - block->data) + (size_t)suffix;
	return 0;
}

int reftable_block_next(const struct reftable_block *block,
    const struct reftable_context *context, struct reftable_cursor *cursor,
    const char **why)
{
	struct reftable_raw raw = { .section = block->section,
		.key = cursor->key };
	size_t at;
	int r;

	if (cursor->at >= block->end)
		return 0;
	r = next_key(block, cursor, &at, &raw.type, why);
	if (r < 0)
		return r;
	raw.key_len = cursor->key_len;
	raw.value = block->data + at;
	raw.len = block->end - at;
	r = reftable_record_decode(context, &raw, &cursor->record, why);
	if (r < 0)
		return r;
	at += (size_t)r;
	cursor->passed += at - cursor->at;
	cursor->at = at;
	return 1;
}

size_t reftable_block_size(const struct reftable_block *block)
{
	return block->end + block->restarts * POINT_BYTES + COUNT_BYTES;
}

size_t reftable_block_restart(const struct reftable_block *block, size_t nr)
{
	return (size_t)reftable_record_get(
	    block->data + block->end + nr * POINT_BYTES, POINT_BYTES);
}

/* Puts the cursor to restart point NR. */
static int go_to(const struct reftable_block *block, size_t nr,
    struct reftable_cursor *cursor, const char **why)
{
	cursor->at = reftable_block_restart(block, nr);
	cursor->key_len = 0;
	if (cursor->at < block->first || cursor->at >= block->end)
		return bad(why, "a restart point is not in the block");
	return 0;
}

int reftable_block_seek(const struct reftable_block *block,
    const struct reftable_context *context, const uint8_t *key, size_t key_len,
    struct reftable_cursor *cursor, const char **why)
{
	/* The record is behind the point LOW - 1, and not behind the point
	 * HIGH. */
	size_t low = 0, high = block->restarts, middle, at;
	unsigned type;
	int r;

	while (low < high) {
		middle = low + (high - low) / 2;
		r = go_to(block, middle, cursor, why);
		if (r == 0)
			r = next_key(block, cursor, &at, &type, why);
		if (r < 0)
			return r;
		if (reftable_block_compare(cursor->key, cursor->key_len, key,
			key_len) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	reftable_block_first(block, cursor);
	r = low > 0 ? go_to(block, low - 1, cursor, why) : 0;
	if (r < 0)
		return r;
	while ((r = reftable_block_next(block, context, cursor, why)) > 0)
		if (reftable_block_compare(cursor->key, cursor->key_len, key,
			key_len) >= 0)
			break;
	return r;
}
