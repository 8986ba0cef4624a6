/*
 * For tests of batches in a repository with reftables: a world (world_rig.h)
 * whose WORLD_REPO has a stack by git, and the other writer of stack_rig.h on
 * this stack. Values are letters, as in world.h. Every failure fails the test.
 */
#ifndef TESTS_LIB_TABLES_RIG_H
#define TESTS_LIB_TABLES_RIG_H

#include "tests/lib/stack_rig.h"
#include "tests/lib/world_rig.h"

/* Fixtures. The stack has HEAD, which points to refs/heads/main, and
 * refs/heads/keep with the value 1 and a log. */
void tbl_setup(void);
/* Also with the worktree "wt", whose HEAD points to refs/heads/side. */
void tbl_setup_worktree(void);
/* Fails if descriptors, locks, or staged files are left. */
void tbl_teardown(void);
/* For a sweep: a world on FS, which is taken over, that has not started. */
struct world *tbl_make(struct memfs *fs, bool worktree);
/* Frees the world, without any check. */
void tbl_free(void);

/* After a power loss, which closes the descriptors of the other writer. */
void tbl_reopen(void);

/* The functions below, and those of stack_rig.h for the other writer, are about
 * the stack of WORKTREE ("": the common dir) from now on. */
void tbl_use(const char *worktree);

/* The value of NAME (as in world_ref()); '!': the stack is damaged. */
char tbl_ref(const char *name);
/* The number of log entries of NAME from OLD to NEW. */
int tbl_log_count(const char *name, char old, char new_c);
/* Git sets NAME to VALUE ('0': deletes it), with the next index. */
void tbl_git(const char *name, char value);

#endif
