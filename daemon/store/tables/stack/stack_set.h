/*
 * The stacks of a repository: that of the common dir, and those of the linked
 * worktrees, which have HEAD, refs/bisect/ and other names of their own.
 *
 * Owned by struct repo, and used by any thread. The mutex is a leaf lock.
 * Errors as in stack.h.
 */
#ifndef STORE_STACK_SET_H
#define STORE_STACK_SET_H

#include "daemon/store/tables/stack/stack.h"

/* If there are more, stacks which nobody uses are closed, because an open stack
 * holds a descriptor of its directory. */
#define STACK_SET_KEPT 4

struct stack_set;

/* *FORMAT is borrowed for the life of the set. NULL if memory is short. */
struct stack_set *stack_set_new(const struct sys *sys,
    const enum refd_object_format *format);
/* No reference to a stack may be left. */
void stack_set_free(struct stack_set *set);

/*
 * The stack of WORKTREE ("": the common dir), with a reference. GIT_FD is the
 * git-dir, open. A worktree that was removed and made again has a different
 * directory, so the old stack is forgotten, and the new stack is opened. A
 * session keeps the reference while it holds names, because the stack has the
 * names. Blocks for an openat and a few stats.
 */
int stack_set_get(struct stack_set *set, const char *worktree, int git_fd,
    struct stack **stack);

/* Calls FN for every open stack, without the mutex. Stops if FN returns a value
 * other than 0, and returns the value. -ENOMEM. */
int stack_set_each(struct stack_set *set,
    int (*fn)(void *arg, struct stack *stack), void *arg);

#endif
