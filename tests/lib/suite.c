#include <stdlib.h>

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
