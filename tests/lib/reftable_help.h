/*
 * For tests of reftables: tables in memory and in directories. Every call ends
 * the process on a failure.
 */
#ifndef TESTS_LIB_REFTABLE_HELP_H
#define TESTS_LIB_REFTABLE_HELP_H

#include "daemon/base/sys.h"
#include "daemon/store/tables/format/reftable_stack.h"
#include "daemon/store/tables/format/reftable_writer.h"

struct rh_bytes {
	uint8_t *data;
	size_t len, size;
};

/* A reftable_write_fn; ARG is a struct rh_bytes. */
int rh_append(void *arg, const void *bytes, size_t len);
void rh_free(struct rh_bytes *bytes);

/* A budget without a bound, for one thread. */
struct reftable_budget *rh_budget(void);

/* Records. The ids consist of the byte ID. Strings are borrowed. */
struct reftable_record rh_ref(const char *name, uint64_t index, uint8_t id);
struct reftable_record rh_deleted(const char *name, uint64_t index);
struct reftable_record rh_symref(const char *name, uint64_t index,
    const char *target);
struct reftable_record rh_log(const char *name, uint64_t index, uint8_t from,
    uint8_t to, const char *message);

/* A table of NR records. */
struct rh_bytes rh_table(enum refd_object_format format, uint64_t min_index,
    uint64_t max_index, const struct reftable_record *records, size_t nr);

/* A table of SHA-1 with the index INDEX and NR deletions, NR up to 26^4: all
 * follow a single restart point, in one block. The names, of four letters, are
 * evenly distributed. */
struct rh_bytes rh_one_block(uint64_t index, unsigned nr);
/* Appends the tables FIRST to END - 1 of STACK to OUT as one table, as another
 * program would merge them. Deletions are dropped only if FIRST is 0, because
 * otherwise they hide records of earlier tables. Results as in
 * reftable_table.h; -E2BIG: a record does not fit a block of 4096 bytes. */
int rh_merge(const struct reftable_stack *stack, size_t first, size_t end,
    struct rh_bytes *out, struct reftable_fault *fault);
/* Writes the check sum of a footer of SHA-1, at the end of TABLE. */
void rh_mend_crc(struct rh_bytes *table);

/* Writes the file PATH. */
void rh_put(const struct sys *sys, int dirfd, const char *path,
    const void *data, size_t len);
/* Writes a table with git's name, and appends the name to tables.list. */
void rh_add(const struct sys *sys, int dirfd, const struct rh_bytes *table,
    uint64_t min_index, uint64_t max_index, uint32_t random);

#endif
