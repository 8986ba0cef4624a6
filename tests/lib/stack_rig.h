/*
 * A checked fixture for tests of stacks: a git-dir in a memfs, with refd/stage/
 * and a stack of one table by git: HEAD points to refs/heads/main, and
 * refs/heads/main has id 1 and a log, both with index 1.
 *
 * Functions of the other writer use memfs_other(): faults and counters do not
 * apply.
 */
#ifndef TESTS_LIB_STACK_RIG_H
#define TESTS_LIB_STACK_RIG_H

#include "daemon/store/tables/stack/stack_reader.h"
#include "daemon/store/tables/stack/stack_set.h"
#include "daemon/store/tables/stack/stack_update.h"
#include "tests/lib/memfs.h"
#include "tests/lib/reftable_help.h"

struct stack_rig {
	struct memfs *fs;
	const struct sys *sys, *other;
	/* Of the process under test; OTHER_DIR: reftable/ of the other
	 * writer. */
	int git_fd, stage_fd, other_dir;
	enum refd_object_format format;
	struct stack *stack;
	struct token token;
	uint64_t batch;  /* the last token's */
	uint32_t random; /* the last table's of the other writer */
	struct reftable_fault fault;
};

extern struct stack_rig stk;

void stk_setup(void);
void stk_teardown(void);
/* The same for a sweep: FS is taken over. stk_open() begins the process. */
void stk_make(struct memfs *fs);
int stk_open(void);
void stk_close(void);

/* ---- the other writer, who acts as git ---- */

/* Appends a table of NR records, with the index INDEX. */
void stk_git(uint64_t index, const struct reftable_record *records, size_t nr);
/* Merges the tables FIRST to END - 1, if they exist, and unlinks them. */
void stk_git_merge(size_t first, size_t end);
/* Removes unlisted tables, as git does. */
void stk_git_clean(void);

/* ---- the process under test ---- */

struct stk_records {
	const struct reftable_record *records; /* index 0: that of the table */
	size_t nr;
};
/* stack_record_of_fn; ARG is a struct stk_records. */
void stk_record(void *arg, size_t i, struct reftable_record *record);

/* Begins an update with a new token: stack_update_init() and begin(). */
int stk_begin(struct stack_update *u);
int stk_table(struct stack_update *u, const struct reftable_record *records,
    size_t nr);
/* lock, check, list, sync_base, sync and place. */
int stk_publish(struct stack_update *u);
/* unlock, release, done, and the token. */
int stk_end(struct stack_update *u);
/* All of these. */
int stk_write(const struct reftable_record *records, size_t nr);

/* The refs, or the logs, of the stack, as in rr_list(), read by the other
 * writer. "FAULT ...": the stack is damaged. Static. */
const char *stk_list(enum reftable_section section);
/* The number of files in reftable/, and in refd/stage/. */
size_t stk_nr_files(void);
size_t stk_nr_staged(void);

#endif
