#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/suite.h"

int suite_run(Suite *s)
{
	SRunner *runner = srunner_create(s);
	int nr_failed;

	srunner_run_all(runner, CK_ENV);
	nr_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return nr_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void suite_skip(const char *test, const char *why)
{
	printf("skip %s: %s\n", test, why);
	/* libcheck kills a test at its time limit by a signal. */
	fflush(stdout);
}

bool suite_is_root(const char *test)
{
	if (geteuid() == 0)
		return true;
	suite_skip(test, "only root can be two users");
	return false;
}
