/*
 * For tests of a single batch: runs transactions on the world of the running
 * test (world_rig.h), and checks their statuses and that no lock is left.
 */
#ifndef TESTS_LIB_APPLY_RIG_H
#define TESTS_LIB_APPLY_RIG_H

#include "tests/lib/world_rig.h"

/* Applies SPEC. Fails unless the statuses are these NR, in order, and no lock
 * is left. */
void apply_expect(const char *spec, bool atomic, size_t nr, ...);

#define OK(spec) apply_expect(spec, false, 1, REFD_OK)

#endif
