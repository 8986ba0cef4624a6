/*
 * For tests of what one window does: a world for each test, and transactions
 * whose statuses are expected and that leave no lock.
 */
#ifndef TESTS_LIB_APPLY_RIG_H
#define TESTS_LIB_APPLY_RIG_H

#include "tests/lib/world.h"

/* The running test's. */
extern struct world *w;

/* A fixture. The journal shares the repository's disk. */
void apply_setup(void);
void apply_teardown(void);

/* Applies SPEC and expects these statuses, in order, and no lock behind. */
void apply_expect(const char *spec, bool atomic, size_t nr, ...);
/* What memfs_list_locks() says of the repository. */
void apply_expect_locks(const char *want);

#define OK(spec) apply_expect(spec, false, 1, REFD_OK)

#endif
