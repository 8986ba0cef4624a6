/*
 * One table, with its header, its footer and its blocks.
 *
 * A table never changes after its creation. But another program may have
 * damaged the file, or may cut the file at any moment, and a mapped page behind
 * the end would stop the daemon by SIGBUS. So the file is read with pread(2),
 * never mapped, and every position is checked. A block takes at most 16 MiB of
 * memory, because the format has three bytes for the length.
 *
 * Any thread; every call may block; nothing logs. 0 or negative errno, with a
 * description in *FAULT. -EBADMSG if the table is damaged, and -EFBIG beyond a
 * budget.
 */
#ifndef STORE_REFTABLE_TABLE_H
#define STORE_REFTABLE_TABLE_H

#include <stdatomic.h>

#include "daemon/base/sys.h"
#include "daemon/store/tables/format/reftable_block.h"

/* Bytes of the largest footer. */
#define REFTABLE_FOOTER_MAX 72

/* A table's name is one component of a path. */
#define REFTABLE_TABLE_NAME_MAX 255

/* Set by a failed call. */
struct reftable_fault {
	char table[REFTABLE_TABLE_NAME_MAX + 1]; /* or "tables.list" */
	uint64_t at;                             /* the position of a block */
	const char *why;                         /* static; NULL: see errno */
};

/* A copy of the struct by reftable_table_share() has the same descriptor. */
struct reftable_table {
	const struct sys *sys; /* borrowed */
	int fd;
	atomic_uint *users; /* copies with FD; the last one frees both */
	char name[REFTABLE_TABLE_NAME_MAX + 1];
	uint64_t file_size, end; /* END: of the blocks */
	int64_t ctime_ns;        /* when the table was opened */
	struct reftable_context context;
	uint64_t max_index;
	uint8_t header[29]; /* and the type of the first block */
	size_t header_size;
	uint32_t block_size;         /* 0: blocks are not aligned */
	enum reftable_section first; /* of the first block; 0: no block */
	/* Positions; 0: absent. */
	uint64_t ref_index, objects, object_index, logs, log_index;
};

/* Opens NAME in DIRFD, and checks header and footer. */
int reftable_table_open(const struct sys *sys, int dirfd, const char *name,
    struct reftable_table *table, struct reftable_fault *fault);
/* As reftable_table_open(), but ignores the footer, because a power loss may
 * have taken it. So the end of the file is the end of the blocks, and all
 * positions are 0. */
int reftable_table_open_blocks(const struct sys *sys, int dirfd,
    const char *name, struct reftable_table *table,
    struct reftable_fault *fault);
void reftable_table_close(struct reftable_table *table);
/* *COPY is a further opening of TABLE, and has to be closed too. */
void reftable_table_share(const struct reftable_table *table,
    struct reftable_table *copy);

/* Makes the footer of TABLE from the positions in the struct. ID_LEN is the
 * length of the abbreviated ids. Returns the number of bytes. */
size_t reftable_table_footer(const struct reftable_table *table, size_t id_len,
    uint8_t footer[REFTABLE_FOOTER_MAX]);

/*
 * The memory and the work that a reader may still use. A file states the
 * lengths of its own blocks, so a small file can demand the work of a large
 * file at every look-up. So each reader has a budget, and nothing is read
 * without a budget.
 */
struct reftable_budget {
	size_t memory; /* bytes of buffers; they come back with the buffers */
	/* Bytes that are read, inflated, or passed in a search for a key. */
	uint64_t work;
	/* Called if WORK does not suffice; NULL: nothing is called. Adds to the
	 * budget and returns true, or returns false if no more work is
	 * allowed. */
	bool (*more)(void *arg);
	void *arg;
};
#define REFTABLE_MEMORY_MAX ((size_t)64 * 1024 * 1024)
#define REFTABLE_BUDGET(WORK)                                                  \
	((struct reftable_budget){ .memory = REFTABLE_MEMORY_MAX,              \
	    .work = (WORK) })

/* Takes WORK, done at the block AT, from BUDGET. -EFBIG if BUDGET has too
 * little. */
int reftable_table_spend(const struct reftable_table *table, uint64_t at,
    struct reftable_budget *budget, uint64_t work,
    struct reftable_fault *fault);

/* Reads the block at AT. -EFBIG if the block is beyond BUDGET. */
int reftable_table_read(const struct reftable_table *table, uint64_t at,
    struct reftable_block *block, struct reftable_budget *budget,
    struct reftable_fault *fault);
/* Reads up to LEN bytes of the file at AT, and returns the number of bytes. */
ssize_t reftable_table_bytes(const struct reftable_table *table, uint64_t at,
    void *buf, size_t len, struct reftable_fault *fault);
/* Notes the fault; returns -EBADMSG. */
int reftable_table_bad(const struct reftable_table *table, uint64_t at,
    const char *why, struct reftable_fault *fault);

#endif
