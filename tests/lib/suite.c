#include <stdio.h>
#include <unistd.h>

#include "tests/lib/suite.h"

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
