/*
 * For tests of what one window does: transactions on the running test's world
 * (world_rig.h) whose statuses are expected and that leave no lock.
 */
#ifndef TESTS_LIB_APPLY_RIG_H
#define TESTS_LIB_APPLY_RIG_H

#include "tests/lib/world_rig.h"

/* Applies SPEC and expects these statuses, in order, and no lock behind. */
void apply_expect(const char *spec, bool atomic, size_t nr, ...);

#define OK(spec) apply_expect(spec, false, 1, REFD_OK)

#endif
