/*
 * Happy path: open the file, read the header, and the footer with its check
 * sum. Then read blocks at any position. A log block is inflated.
 *
 * Failures: another file, a cut file, a position behind the end, a length that
 * does not fit. Blocks of refs have no check sum, so a wrong bit in an id is
 * not noticed.
 */
#include "daemon/store/tables/format/reftable_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/tables/format/reftable_zlib.h"

#define HEADER_1    24
#define HEADER_2    28
#define FOOTER_REST 44 /* without the copy of the header */
#define CRC_BYTES   4

/* How much is read of a block at first, because the length of a block is in its
 * first bytes. Reading the block size of the header instead could be far too
 * much: a file can have blocks 16 MiB apart with a single ref in each. Git's
 * default block is read at once. */
#define FIRST_READ 4096

#define HASH_SHA1   0x73686131 /* "sha1" */
#define HASH_SHA256 0x73323536 /* "s256" */

static int note(const struct reftable_table *table, uint64_t at, int error,
    const char *why, struct reftable_fault *fault)
{
	snprintf(fault->table, sizeof(fault->table), "%s", table->name);
	fault->at = at;
	fault->why = error == -EFBIG ? "too much must be read" :
	    error == -EBADMSG        ? why :
				       NULL;
	return error;
}

int reftable_table_bad(const struct reftable_table *table, uint64_t at,
    const char *why, struct reftable_fault *fault)
{
	return note(table, at, -EBADMSG, why, fault);
}

ssize_t reftable_table_bytes(const struct reftable_table *t, uint64_t at,
    void *buf, size_t len, struct reftable_fault *fault)
{
	ssize_t n = SYS(t->sys, pread, t->fd, buf, len, (off_t)at);

	return n < 0 ? note(t, at, (int)n, NULL, fault) : n;
}

/* ---- opening ---- */

/* Reads LEN bytes at AT, or fails. */
static int read_all(const struct reftable_table *t, uint64_t at, void *buf,
    size_t len, struct reftable_fault *fault)
{
	uint8_t *p = buf;
	ssize_t n;

	while (len > 0) {
		n = reftable_table_bytes(t, at, p, len, fault);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return reftable_table_bad(t, at,
			    "the file became shorter", fault);
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static const char *parse_header(struct reftable_table *t, const uint8_t *h)
{
	uint64_t hash;

	if (memcmp(h, "REFT", 4) != 0)
		return "the file is no reftable";
	if (h[4] != 1 && h[4] != 2)
		return "the version of the format is unknown";
	t->header_size = h[4] == 1 ? HEADER_1 : HEADER_2;
	t->block_size = (uint32_t)reftable_record_get(h + 5, 3);
	t->context.min_index = reftable_record_get(h + 8, 8);
	t->max_index = reftable_record_get(h + 16, 8);
	hash = h[4] == 1 ? HASH_SHA1 : reftable_record_get(h + HEADER_1, 4);
	if (hash != HASH_SHA1 && hash != HASH_SHA256)
		return "the object format is unknown";
	t->context.format =
	    hash == HASH_SHA1 ? REFD_FORMAT_SHA1 : REFD_FORMAT_SHA256;
	if (t->context.min_index > t->max_index)
		return "the least update index is above the largest";
	if (t->block_size != 0 &&
	    t->block_size < t->header_size + REFTABLE_BLOCK_LEAST)
		return "the block size is too small";
	return NULL;
}

/* 0, or the position of a block. */
static bool is_position(const struct reftable_table *t, uint64_t at)
{
	return at == 0 || (at >= t->header_size && at < t->end);
}

static const char *parse_footer(struct reftable_table *t, const uint8_t *header,
    const uint8_t *footer)
{
	const size_t crc = t->header_size + FOOTER_REST - CRC_BYTES;
	const uint8_t *p = footer + t->header_size;

	if (reftable_record_get(footer + crc, CRC_BYTES) !=
	    reftable_zlib_crc(footer, crc))
		return "the check sum of the footer is wrong";
	if (memcmp(header, footer, t->header_size) != 0)
		return "header and footer differ";
	t->ref_index = reftable_record_get(p, 8);
	/* The low five bits are the length of abbreviated object ids. */
	t->objects = reftable_record_get(p + 8, 8) >> 5;
	t->object_index = reftable_record_get(p + 16, 8);
	t->logs = reftable_record_get(p + 24, 8);
	t->log_index = reftable_record_get(p + 32, 8);
	if (!is_position(t, t->ref_index) || !is_position(t, t->objects) ||
	    !is_position(t, t->object_index) || !is_position(t, t->logs) ||
	    !is_position(t, t->log_index))
		return "a position in the footer is not in the file";
	return NULL;
}

/* A wrong type of the first block would hide all refs. */
static const char *check_first(struct reftable_table *t)
{
	if (t->first == 0 || t->first == REFTABLE_REFS)
		return NULL;
	if (t->first != REFTABLE_LOGS || t->ref_index != 0 || t->objects != 0 ||
	    t->object_index != 0 || (t->logs != 0 && t->logs != t->header_size))
		return "the first block has a wrong type";
	/* In a table without refs the logs begin behind the header, so the type
	 * of the first block is enough. */
	t->logs = 0;
	return NULL;
}

static int read_header(struct reftable_table *t, struct reftable_fault *fault)
{
	uint8_t *h = t->header;
	const char *why;
	int r;

	if (t->file_size < HEADER_1)
		return reftable_table_bad(t, 0,
		    t->file_size == 0 ? "the file is empty" :
					"the file is too short",
		    fault);
	r = read_all(t, 0, h,
	    t->file_size < sizeof(t->header) ? (size_t)t->file_size :
					       sizeof(t->header),
	    fault);
	if (r < 0)
		return r;
	why = parse_header(t, h);
	if (why == NULL && t->file_size < t->header_size)
		why = "the file is too short";
	if (why != NULL)
		return reftable_table_bad(t, 0, why, fault);
	t->end = t->file_size;
	if (t->end > t->header_size)
		t->first = (enum reftable_section)h[t->header_size];
	return 0;
}

static int read_footer(struct reftable_table *t, struct reftable_fault *fault)
{
	uint8_t footer[REFTABLE_FOOTER_MAX];
	const size_t len = t->header_size + FOOTER_REST;
	const char *why;
	int r;

	if (t->file_size < t->header_size + len)
		return reftable_table_bad(t, 0, "the file is too short", fault);
	t->end = t->file_size - len;
	if (t->end == t->header_size)
		t->first = 0;
	r = read_all(t, t->end, footer, len, fault);
	if (r < 0)
		return r;
	why = parse_footer(t, t->header, footer);
	if (why != NULL)
		return reftable_table_bad(t, t->end, why, fault);
	why = check_first(t);
	return why != NULL ? reftable_table_bad(t, 0, why, fault) : 0;
}

static int open_file(const struct sys *sys, int dirfd, const char *name,
    struct reftable_table *t, struct reftable_fault *fault)
{
	struct sys_stat st;
	int r;

	memset(t, 0, sizeof(*t));
	t->sys = sys;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->fd = SYS(sys, openat, dirfd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (t->fd < 0)
		return note(t, 0, t->fd, NULL, fault);
	t->users = malloc(sizeof(*t->users));
	if (t->users == NULL)
		return note(t, 0, -ENOMEM, NULL, fault);
	atomic_init(t->users, 1);
	r = SYS(sys, fstat, t->fd, &st);
	if (r < 0)
		return note(t, 0, r, NULL, fault);
	if (!S_ISREG(st.mode) || st.size > INT64_MAX)
		return reftable_table_bad(t, 0, "not a regular file", fault);
	t->file_size = st.size;
	t->ctime_ns = st.ctime_ns;
	return 0;
}

int reftable_table_open_blocks(const struct sys *sys, int dirfd,
    const char *name, struct reftable_table *t, struct reftable_fault *fault)
{
	int r = open_file(sys, dirfd, name, t, fault);

	if (r == 0)
		r = read_header(t, fault);
	if (r < 0)
		reftable_table_close(t);
	return r;
}

int reftable_table_open(const struct sys *sys, int dirfd, const char *name,
    struct reftable_table *t, struct reftable_fault *fault)
{
	int r = reftable_table_open_blocks(sys, dirfd, name, t, fault);

	if (r == 0)
		r = read_footer(t, fault);
	if (r < 0)
		reftable_table_close(t);
	return r;
}

/* ---- the footer ---- */

size_t reftable_table_footer(const struct reftable_table *t, size_t id_len,
    uint8_t footer[REFTABLE_FOOTER_MAX])
{
	const size_t crc = t->header_size + FOOTER_REST - CRC_BYTES;
	uint8_t *p = footer + t->header_size;

	memcpy(footer, t->header, t->header_size);
	reftable_record_put(p, 8, t->ref_index);
	reftable_record_put(p + 8, 8, t->objects << 5 | id_len);
	reftable_record_put(p + 16, 8, t->object_index);
	reftable_record_put(p + 24, 8, t->logs);
	reftable_record_put(p + 32, 8, t->log_index);
	reftable_record_put(footer + crc, CRC_BYTES,
	    reftable_zlib_crc(footer, crc));
	return crc + CRC_BYTES;
}

void reftable_table_close(struct reftable_table *t)
{
	const bool is_last =
	    t->users == NULL || atomic_fetch_sub(t->users, 1) == 1;

	if (t->fd >= 0 && is_last) {
		SYS(t->sys, close, t->fd);
		free(t->users);
	}
	t->fd = -1;
	t->users = NULL;
}

void reftable_table_share(const struct reftable_table *t,
    struct reftable_table *copy)
{
	atomic_fetch_add(t->users, 1);
	*copy = *t;
}

/* ---- blocks ---- */

int reftable_table_spend(const struct reftable_table *t, uint64_t at,
    struct reftable_budget *budget, uint64_t work, struct reftable_fault *fault)
{
	if (work > budget->work &&
	    (budget->more == NULL || !budget->more(budget->arg) ||
		work > budget->work))
		return note(t, at, -EFBIG, NULL, fault);
	budget->work -= work;
	return 0;
}

/* Makes room for LEN bytes in *BUF, a buffer of BLOCK. */
static int grow(const struct reftable_table *t,
    const struct reftable_block *block, uint8_t **buf, size_t *size, size_t len,
    struct reftable_budget *budget, struct reftable_fault *fault)
{
	uint8_t *grown;

	if (len <= *size)
		return 0;
	if (len - *size > budget->memory)
		return note(t, block->position, -EFBIG, NULL, fault);
	grown = realloc(*buf, len);
	if (grown == NULL)
		return note(t, block->position, -ENOMEM, NULL, fault);
	budget->memory -= len - *size;
	*buf = grown;
	*size = len;
	return 0;
}

/* LEN is the number of bytes of the inflated block, and GOT the number of bytes
 * in block->raw. */
static int inflate_log(const struct reftable_table *t,
    struct reftable_block *block, size_t skip, size_t len, size_t got,
    struct reftable_budget *budget, struct reftable_fault *fault)
{
	const uint64_t at = block->position;
	const size_t start = skip + REFTABLE_BLOCK_HEADER;
	struct reftable_zlib_input in = {
		.sys = t->sys,
		.fd = t->fd,
		.at = at + got,
		.end = t->end,
		.buf = block->raw,
		.buf_size = block->raw_size,
		.next = block->raw + start,
		.len = got - start,
	};
	int r = reftable_table_spend(t, at, budget, len, fault);

	if (r == 0)
		r = grow(t, block, &block->data, &block->data_size, len, budget,
		    fault);
	if (r < 0)
		return r;
	memcpy(block->data, block->raw, start);
	r = reftable_zlib_inflate(&in, block->data + start, len - start);
	block->next = in.at - in.len;
	if (r < 0)
		return note(t, at, r, "a log block cannot be inflated", fault);
	return reftable_table_spend(t, at, budget, in.at - at - got, fault);
}

/* Reads the first WANTED bytes of the block into block->raw, which has GOT
 * bytes already. */
static int read_on(const struct reftable_table *t, struct reftable_block *block,
    size_t got, size_t wanted, struct reftable_budget *budget,
    struct reftable_fault *fault)
{
	int r;

	if (wanted <= got)
		return 0;
	r = reftable_table_spend(t, block->position, budget, wanted - got,
	    fault);
	if (r == 0)
		r = grow(t, block, &block->raw, &block->raw_size, wanted,
		    budget, fault);
	return r < 0 ? r :
		       read_all(t, block->position + got, block->raw + got,
			   wanted - got, fault);
}

static int read_plain(const struct reftable_table *t,
    struct reftable_block *block, size_t len, size_t got,
    struct reftable_budget *budget, struct reftable_fault *fault)
{
	const bool may_pad =
	    len < t->block_size && len < t->end - block->position;
	uint8_t *raw;
	size_t size, unit = t->block_size;
	int r = read_on(t, block, got, len + may_pad, budget, fault);

	if (r < 0)
		return r;
	/* Padding is zero, so a byte other than zero is the type of an
	 * unaligned block. */
	if (len >= unit || (may_pad && block->raw[len] != 0))
		unit = len;
	block->next = block->position + unit;
	raw = block->data;
	size = block->data_size;
	block->data = block->raw;
	block->data_size = block->raw_size;
	block->raw = raw;
	block->raw_size = size;
	return 0;
}

static bool is_section(uint8_t type)
{
	return type == REFTABLE_REFS || type == REFTABLE_OBJECTS ||
	    type == REFTABLE_LOGS || type == REFTABLE_INDEX;
}

int reftable_table_read(const struct reftable_table *t, uint64_t at,
    struct reftable_block *block, struct reftable_budget *budget,
    struct reftable_fault *fault)
{
	const size_t skip = at == 0 ? t->header_size : 0;
	size_t len, got = FIRST_READ;
	const char *why;
	int r;

	if (at >= t->end || t->end - at < skip + REFTABLE_BLOCK_LEAST)
		return reftable_table_bad(t, at,
		    "a block begins too near to the end", fault);
	if (t->block_size > 0 && got > t->block_size)
		got = t->block_size;
	if (got > t->end - at)
		got = (size_t)(t->end - at);
	block->position = at;
	r = read_on(t, block, 0, got, budget, fault);
	if (r < 0)
		return r;
	if (!is_section(block->raw[skip]))
		return reftable_table_bad(t, at, "a block has an unknown type",
		    fault);
	len = (size_t)reftable_record_get(block->raw + skip + 1, 3);
	if (len < skip + REFTABLE_BLOCK_LEAST)
		return reftable_table_bad(t, at, "a block is too short", fault);
	if (block->raw[skip] == REFTABLE_LOGS) {
		r = inflate_log(t, block, skip, len, got, budget, fault);
	} else {
		if (len > t->end - at)
			return reftable_table_bad(t, at,
			    "a block is longer than the file", fault);
		r = read_plain(t, block, len, got, budget, fault);
	}
	if (r < 0)
		return r;
	r = reftable_block_init(block, skip, len, &why);
	return r < 0 ? reftable_table_bad(t, at, why, fault) : 0;
}
