/*
 * A checked fixture for tests of reftables: a directory in a memfs.
 */
#ifndef TESTS_LIB_REFTABLE_RIG_H
#define TESTS_LIB_REFTABLE_RIG_H

#include "daemon/store/tables/format/reftable_stack.h"
#include "tests/lib/memfs.h"
#include "tests/lib/reftable_help.h"

extern struct memfs *rr_fs;
extern const struct sys *rr_sys;
extern int rr_dir;
extern struct reftable_fault rr_fault;

void rr_setup(void);
void rr_teardown(void);

/* Appends a table of NR records with the index INDEX. */
void rr_add(uint64_t index, const struct reftable_record *records, size_t nr);
/* NR refs, rr_name(0) and so on, with ids of one byte. */
struct rh_bytes rr_many(enum refd_object_format format, unsigned nr,
    bool with_logs);
const char *rr_name(unsigned i);
/* Opens DATA as a table. */
int rr_open(const struct rh_bytes *data, struct reftable_table *table);
/* All records of all tables of STACK as "name=id ", "name>target ", "name- " or
 * "name@index:from,to ". Static. */
const char *rr_list(const struct reftable_stack *stack,
    enum reftable_section section, bool with_deletions);

#endif
