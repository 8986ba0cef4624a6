/*
 * Proves that a unit test fails if no test runs in the case that CK_RUN_CASE
 * names. Otherwise a misspelt name would look like a pass.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/suite.h"

CASE(.name = "empty", .is_left_out = true);

TEST(is_left_out)
{
	ck_abort();
}

CASE(.name = "short");

TEST(passes)
{
}

CASE(.name = "names");

/* The exit status of this program with the case NAME. */
static int run_case(const char *name)
{
	char program[PATH_MAX] = "", command[PATH_MAX + 100];
	int status;

	ck_assert_int_gt(
	    readlink("/proc/self/exe", program, sizeof(program) - 1), 0);
	snprintf(command, sizeof(command),
	    "CK_RUN_CASE=%s '%s' >/dev/null 2>&1", name, program);
	status = system(command);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(a_name_without_tests_fails)
{
	ck_assert_int_eq(run_case("short"), EXIT_SUCCESS);
	ck_assert_int_eq(run_case("shrot"), EXIT_FAILURE);
	ck_assert_int_eq(run_case("empty"), EXIT_FAILURE);
}
