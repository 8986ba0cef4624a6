/*
 * The end of every unit test's main().
 */
#ifndef TESTS_LIB_SUITE_H
#define TESTS_LIB_SUITE_H

#include <check.h>

/* Runs S, prints how it went and frees it; as loudly as CK_VERBOSITY says.
 * Returns what main() returns. */
int suite_run(Suite *s);

#endif
