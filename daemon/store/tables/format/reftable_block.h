/*
 * The records of one block in memory, in order or from a key on.
 *
 * Pure functions over the bytes of a block, for any thread. The bytes are
 * hostile, so a call may fail with -EBADMSG and a reason in *WHY, if a record
 * is cut off or not in order, or if the table of restart points is wrong.
 */
#ifndef STORE_REFTABLE_BLOCK_H
#define STORE_REFTABLE_BLOCK_H

#include "daemon/store/tables/format/reftable_record.h"

/* The length of a block's header, and the least length of a block, whose end
 * has at least one restart point. */
#define REFTABLE_BLOCK_HEADER 4
#define REFTABLE_BLOCK_LEAST  (REFTABLE_BLOCK_HEADER + 3 + 2)

/* Zero-initialised is empty. Owns both buffers. */
struct reftable_block {
	uint8_t *data, *raw; /* RAW: a log block as stored */
	size_t data_size, raw_size;
	uint64_t position, next; /* in the file; NEXT: of the next block */
	enum reftable_section section;
	size_t first;    /* of the first record */
	size_t end;      /* of the records; the restart points follow */
	size_t restarts; /* their number */
};

/* A position in a block, after the last decoded record. */
struct reftable_cursor {
	size_t at;
	uint8_t key[REFTABLE_KEY_MAX + 1]; /* of the last record; ends by NUL */
	size_t key_len;                    /* 0: no record yet */
	/* Bytes of records and keys that were passed; counted up. Keys count
	 * too, because many records of three bytes can have keys of
	 * thousands. */
	uint64_t passed;
	struct reftable_record record;
};

/* Sets BLOCK up for LEN bytes in its data, with the header at SKIP. */
int reftable_block_init(struct reftable_block *block, size_t skip, size_t len,
    const char **why);
void reftable_block_done(struct reftable_block *block);

void reftable_block_first(const struct reftable_block *block,
    struct reftable_cursor *cursor);
/* Decodes the next record. 1, 0 if no record follows, or negative. */
int reftable_block_next(const struct reftable_block *block,
    const struct reftable_context *context, struct reftable_cursor *cursor,
    const char **why);
/* Decodes the first record whose key is KEY or greater. As above. */
int reftable_block_seek(const struct reftable_block *block,
    const struct reftable_context *context, const uint8_t *key, size_t key_len,
    struct reftable_cursor *cursor, const char **why);

/* Bytes of the block, less compression. */
size_t reftable_block_size(const struct reftable_block *block);

/* The position of restart point NR in the block, which is not checked. */
size_t reftable_block_restart(const struct reftable_block *block, size_t nr);

/* The order of two keys: negative, 0 or positive. */
int reftable_block_compare(const uint8_t *a, size_t a_len, const uint8_t *b,
    size_t b_len);

#endif
