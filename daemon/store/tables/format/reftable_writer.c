/*
 * Happy path:
 *	add	a record goes into the block; a full block goes out
 *	finish	the index of each section; levels of the index until few blocks
 *		are on top; the footer with its check sum
 *
 * Failures: a record is not in order, or does not fit into an empty block.
 */
#include "daemon/store/tables/format/reftable_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_block.h"
#include "daemon/store/tables/format/reftable_zlib.h"

#define INTERVAL     16
#define RECORD_LEAST 3
#define HEADER_MAX   28
#define FOOTER_MAX   72

/* Git reads up to three blocks one by one, so few blocks of refs get no index.
 * But the format demands an index of two or more log blocks. */
#define REFS_WITHOUT_INDEX 3
#define LOGS_WITHOUT_INDEX 1

/* A block that was written: an entry of the index. */
struct written {
	uint64_t position;
	size_t key_len;
	uint8_t *key; /* the last one of the block */
};

struct written_list {
	struct written *items;
	size_t nr, room;
};

struct reftable_writer {
	enum refd_object_format format;
	uint64_t min_index, max_index;
	reftable_write_fn *write;
	void *arg;

	uint8_t block[REFTABLE_BLOCK_BYTES];
	enum reftable_section section; /* of the block; 0: no block */
	size_t skip;                   /* the header of the file */
	size_t len, nr;                /* bytes and records */
	uint16_t restarts[REFTABLE_BLOCK_BYTES / RECORD_LEAST];
	size_t nr_restarts;
	uint8_t key[REFTABLE_KEY_MAX]; /* the last one */
	size_t key_len;

	uint64_t position; /* of the next block */
	size_t padding;    /* zeroes to be written before */
	struct written_list written;
	uint64_t ref_index, logs, log_index;
};

struct reftable_writer *reftable_writer_new(enum refd_object_format format,
    uint64_t min_index, uint64_t max_index, reftable_write_fn *write, void *arg)
{
	struct reftable_writer *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->format = format;
	w->min_index = min_index;
	w->max_index = max_index;
	w->write = write;
	w->arg = arg;
	return w;
}

static void free_written(struct written_list *list)
{
	size_t i;

	for (i = 0; i < list->nr; i++)
		free(list->items[i].key);
	free(list->items);
	memset(list, 0, sizeof(*list));
}

void reftable_writer_free(struct reftable_writer *w)
{
	if (w == NULL)
		return;
	free_written(&w->written);
	free(w);
}

const char *reftable_writer_name(uint64_t min_index, uint64_t max_index,
    uint32_t random, char name[REFTABLE_WRITER_NAME])
{
	snprintf(name, REFTABLE_WRITER_NAME, "0x%012llx-0x%012llx-%08x.ref",
	    (unsigned long long)min_index, (unsigned long long)max_index,
	    random);
	return name;
}

/* ---- blocks ---- */

static size_t put_header(const struct reftable_writer *w, uint8_t *p)
{
	const bool is_sha1 = w->format == REFD_FORMAT_SHA1;

	memcpy(p, "REFT", 4);
	p[4] = is_sha1 ? 1 : 2;
	reftable_record_put(p + 5, 3, REFTABLE_BLOCK_BYTES);
	reftable_record_put(p + 8, 8, w->min_index);
	reftable_record_put(p + 16, 8, w->max_index);
	if (!is_sha1)
		memcpy(p + 24, "s256", 4);
	return is_sha1 ? 24 : 28;
}

static int write_out(struct reftable_writer *w, const void *bytes, size_t len)
{
	static const uint8_t zeroes[REFTABLE_BLOCK_BYTES];
	int r = 0;

	if (w->padding > 0)
		r = w->write(w->arg, zeroes, w->padding);
	w->padding = 0;
	return r < 0 ? r : w->write(w->arg, bytes, len);
}

static void begin_block(struct reftable_writer *w,
    enum reftable_section section)
{
	w->section = section;
	w->skip = w->position == 0 ? put_header(w, w->block) : 0;
	w->block[w->skip] = (uint8_t)section;
	w->len = w->skip + REFTABLE_BLOCK_HEADER;
	w->nr = w->nr_restarts = 0;
}

/* False: the record does not fit. */
static bool put(struct reftable_writer *w, const uint8_t *key, size_t key_len,
    unsigned type, const uint8_t *value, size_t value_len)
{
	uint8_t head[2 * 10];
	size_t prefix = 0, head_len, restarts;

	if (w->nr % INTERVAL != 0)
		while (prefix < key_len && prefix < w->key_len &&
		    key[prefix] == w->key[prefix])
			prefix++;
	head_len = reftable_record_put_varint(head, prefix);
	head_len += reftable_record_put_varint(head + head_len,
	    (uint64_t)(key_len - prefix) << 3 | type);
	restarts = w->nr_restarts + (prefix == 0);
	if (w->len + head_len + key_len - prefix + value_len + 3 * restarts +
		2 >
	    REFTABLE_BLOCK_BYTES)
		return false;
	if (prefix == 0)
		w->restarts[w->nr_restarts++] = (uint16_t)w->len;
	memcpy(w->block + w->len, head, head_len);
	w->len += head_len;
	memcpy(w->block + w->len, key + prefix, key_len - prefix);
	w->len += key_len - prefix;
	memcpy(w->block + w->len, value, value_len);
	w->len += value_len;
	memcpy(w->key, key, key_len);
	w->key_len = key_len;
	w->nr++;
	return true;
}

/* Notes the block for the index. */
static int note_written(struct reftable_writer *w)
{
	struct written_list *list = &w->written;
	size_t room = list->room > 0 ? 2 * list->room : 64;
	struct written *grown;
	uint8_t *key;

	if (list->nr == list->room) {
		grown = realloc(list->items, room * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		list->items = grown;
		list->room = room;
	}
	key = malloc(w->key_len);
	if (key == NULL)
		return -ENOMEM;
	memcpy(key, w->key, w->key_len);
	list->items[list->nr++] =
	    (struct written){ w->position, w->key_len, key };
	return 0;
}

static int write_log_block(struct reftable_writer *w, size_t *len)
{
	/* Bytes that deflate cannot compress are stored, and need a few bytes
	 * more. */
	uint8_t out[REFTABLE_BLOCK_BYTES + 64];
	const size_t start = w->skip + REFTABLE_BLOCK_HEADER;
	ssize_t n;

	memcpy(out, w->block, start);
	n = reftable_zlib_deflate(w->block + start, w->len - start, out + start,
	    sizeof(out) - start);
	if (n < 0)
		return (int)n;
	*len = start + (size_t)n;
	return write_out(w, out, *len);
}

static int end_block(struct reftable_writer *w)
{
	size_t i, len, padding = 0;
	int r;

	if (w->section == 0 || w->nr == 0)
		return 0;
	for (i = 0; i < w->nr_restarts; i++, w->len += 3)
		reftable_record_put(w->block + w->len, 3, w->restarts[i]);
	reftable_record_put(w->block + w->len, 2, w->nr_restarts);
	w->len += 2;
	reftable_record_put(w->block + w->skip + 1, 3, w->len);
	r = note_written(w);
	if (r < 0)
		return r;
	if (w->section == REFTABLE_LOGS && w->written.nr == 1)
		w->logs = w->position;
	if (w->section == REFTABLE_LOGS) {
		r = write_log_block(w, &len);
	} else {
		len = w->len;
		padding = REFTABLE_BLOCK_BYTES - len;
		r = write_out(w, w->block, len);
	}
	w->padding = padding;
	w->position += len + padding;
	w->nr = 0;
	return r;
}

/* ---- sections ---- */

static int add_index(struct reftable_writer *w, const struct written *child)
{
	uint8_t value[10];
	size_t len = reftable_record_put_varint(value, child->position);
	int r;

	if (put(w, child->key, child->key_len, 0, value, len))
		return 0;
	r = end_block(w);
	begin_block(w, REFTABLE_INDEX);
	if (r == 0 && !put(w, child->key, child->key_len, 0, value, len))
		r = -E2BIG;
	return r;
}

/* Writes one level of the index, about the blocks written last. */
static int write_level(struct reftable_writer *w)
{
	struct written_list below = w->written;
	size_t i;
	int r = 0;

	memset(&w->written, 0, sizeof(w->written));
	begin_block(w, REFTABLE_INDEX);
	for (i = 0; r == 0 && i < below.nr; i++)
		r = add_index(w, &below.items[i]);
	if (r == 0)
		r = end_block(w);
	/* With keys as long as a block, the levels would never end. */
	if (r == 0 && w->written.nr >= below.nr)
		r = -E2BIG;
	free_written(&below);
	return r;
}

static int end_section(struct reftable_writer *w)
{
	const bool is_logs = w->section == REFTABLE_LOGS;
	uint64_t *index = is_logs ? &w->log_index : &w->ref_index;
	int r = end_block(w);

	while (r == 0 &&
	    w->written.nr >
		(is_logs ? LOGS_WITHOUT_INDEX : REFS_WITHOUT_INDEX)) {
		*index = w->position;
		r = write_level(w);
	}
	free_written(&w->written);
	w->section = 0;
	w->key_len = 0;
	return r;
}

int reftable_writer_add(struct reftable_writer *w,
    const struct reftable_record *rec)
{
	uint8_t key[REFTABLE_KEY_MAX], value[REFTABLE_BLOCK_BYTES];
	size_t key_len = reftable_record_key(rec, key);
	const unsigned type = reftable_record_type(rec);
	const bool is_log = rec->section == REFTABLE_LOGS;
	int len, r = 0;

	/* An entry of a log may be below the bounds, because it may replace an
	 * entry of an earlier table. */
	if (key_len == 0 || rec->update_index > w->max_index ||
	    (!is_log && rec->update_index < w->min_index))
		return -EINVAL;
	if (is_log && w->section != REFTABLE_LOGS) {
		r = w->section != 0 ? end_section(w) : 0;
		/* Log blocks are not aligned, so no padding comes before
		 * them. */
		w->position -= w->padding;
		w->padding = 0;
	}
	if (r < 0 || (!is_log && (w->section == REFTABLE_LOGS)))
		return r < 0 ? r : -EINVAL;
	if (w->section == 0)
		begin_block(w, rec->section);
	if (w->key_len > 0 &&
	    reftable_block_compare(key, key_len, w->key, w->key_len) <= 0)
		return -EINVAL;
	len = reftable_record_encode(rec, w->format, w->min_index, value,
	    sizeof(value));
	if (len < 0 || put(w, key, key_len, type, value, (size_t)len))
		return len < 0 ? len : 0;
	r = end_block(w);
	begin_block(w, rec->section);
	if (r == 0 && !put(w, key, key_len, type, value, (size_t)len))
		r = -E2BIG;
	return r;
}

int reftable_writer_finish(struct reftable_writer *w)
{
	uint8_t footer[FOOTER_MAX] = { 0 }, *p = footer;
	int r = w->section != 0 ? end_section(w) : 0;

	w->padding = 0;
	p += put_header(w, footer);
	if (r == 0 && w->position == 0)
		r = write_out(w, footer, (size_t)(p - footer));
	reftable_record_put(p, 8, w->ref_index);
	reftable_record_put(p + 24, 8, w->logs);
	reftable_record_put(p + 32, 8, w->log_index);
	p += 40;
	reftable_record_put(p, 4,
	    reftable_zlib_crc(footer, (size_t)(p - footer)));
	p += 4;
	return r < 0 ? r : write_out(w, footer, (size_t)(p - footer));
}
