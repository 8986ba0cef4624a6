/*
 * A look into the stack of a git-dir, at one moment. A look takes no turn of
 * the stack, because a batch keeps the turn for a whole flush, and other
 * writers do not take the turn at all.
 *
 * Any thread may look. A look blocks on the disk, and logs nothing. Errors as
 * in stack.h.
 */
#ifndef STORE_STACK_LOOK_H
#define STORE_STACK_LOOK_H

#include "daemon/store/files/format/loose.h"
#include "daemon/store/tables/stack/stack_reader.h"
#include "daemon/store/tables/stack/stack_set.h"

/* Zero-initialised is empty. Must not move, because the reader borrows the
 * budget. */
struct stack_look {
	struct stack *stack;         /* a reference */
	struct stack_snapshot *snap; /* a reference */
	struct stack_reader reader;
	struct reftable_budget budget;
};

/* Opens the stack of WORKTREE, as stack_set_get(), and takes a snapshot, whose
 * reader may do WORK. After a failure LOOK is empty. */
int stack_look_begin(struct stack_look *look, struct stack_set *set,
    const char *worktree, int git_fd, uint64_t work);
/* Allowed in any state, and more than once. */
void stack_look_end(struct stack_look *look);

/* The value of NAME in the stack, as if a file had the value: absent, an id, a
 * symbolic ref, or broken, because its target contains a NUL. *INDEX is the
 * index of the record, also of a deletion, or 0 without a record. -ENOMEM. */
int stack_look_value(struct stack_reader *reader, const char *name,
    struct loose_value *value, uint64_t *index);

/* The record of a ref, for the rule of recovery and for refd verify. */
struct stack_found {
	uint64_t index;   /* 0: no record */
	uint64_t earlier; /* the largest index of the tables before */
	bool exists;      /* false: no record, or a deletion */
	struct refd_oid oid;
	char *target; /* of a symbolic ref; else NULL; owned */
};

/* As stack_look_value(). */
int stack_look_found(struct stack_reader *reader, const char *name,
    struct stack_found *found);
void stack_found_done(struct stack_found *found);

#endif
