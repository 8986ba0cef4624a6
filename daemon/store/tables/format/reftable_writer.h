/*
 * Writes a table in the form that git writes: blocks of 4096 bytes, indexes for
 * sections of many blocks. Object blocks, which map an object to its refs, are
 * left out, because no command of git reads them, and readers without them scan
 * the refs.
 *
 *	new -> add refs in order of names -> add logs in order of keys -> finish
 *
 * Every name comes once, and every log entry of a name with another update
 * index, the largest first. The bytes go to WRITE in order, so only the present
 * block and the entries of the index stay in memory. A writer belongs to one
 * thread, blocks as WRITE does, and logs nothing. After a failure the table
 * cannot be completed.
 */
#ifndef STORE_REFTABLE_WRITER_H
#define STORE_REFTABLE_WRITER_H

#include <sys/types.h>

#include "daemon/store/tables/format/reftable_record.h"

#define REFTABLE_BLOCK_BYTES 4096
/* "0x%012x-0x%012x-%08x.ref" and NUL; an index may need 16 digits */
#define REFTABLE_WRITER_NAME 64

struct reftable_writer;

/* 0 or negative errno, which the call of the writer returns. */
typedef int reftable_write_fn(void *arg, const void *bytes, size_t len);

/* All update indices are between MIN_INDEX and MAX_INDEX, but an entry of a log
 * may have an older index. NULL if memory is short. */
struct reftable_writer *reftable_writer_new(enum refd_object_format format,
    uint64_t min_index, uint64_t max_index, reftable_write_fn *write,
    void *arg);
/* -EINVAL if the record is not in order, or has an index beyond the bounds or a
 * bad name. -E2BIG if the record does not fit a block. (Git cuts messages to
 * half a block.) -ENOMEM. */
int reftable_writer_add(struct reftable_writer *writer,
    const struct reftable_record *record);
int reftable_writer_finish(struct reftable_writer *writer);
void reftable_writer_free(struct reftable_writer *writer);

/* The name that git gives to a table. RANDOM makes the name unique, because two
 * tables can have the same indices. */
const char *reftable_writer_name(uint64_t min_index, uint64_t max_index,
    uint32_t random, char name[REFTABLE_WRITER_NAME]);

#endif
