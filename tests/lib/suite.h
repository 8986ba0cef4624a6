/*
 * The end of the main() of every unit test, and skipped tests.
 */
#ifndef TESTS_LIB_SUITE_H
#define TESTS_LIB_SUITE_H

#include <check.h>
#include <stdbool.h>

/* Runs S, prints the result as CK_VERBOSITY says, and frees S. Returns the exit
 * status of the program. */
int suite_run(Suite *s);

/* Reports that TEST, or a part of TEST, does not run on this machine, and WHY.
 * scripts/run-tests counts the report. The caller returns, or does without the
 * part. A test skips at most once. */
void suite_skip(const char *test, const char *why);

/* True for root. Otherwise skips TEST: only root can be two users. */
bool suite_is_root(const char *test);

#endif
