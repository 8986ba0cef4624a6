/*
 * The main() of every unit test. It stands apart from suite.c, and in no
 * archive, because fuzzers and helpers link the other files of tests/lib/ and
 * have a main() of their own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"

static struct suite_case without_members;
static struct suite_case *now = &without_members;
static Suite *suite;

/* test_x is about x. */
static const char *subject(void)
{
	const char *name = program_invocation_short_name;

	return strncmp(name, "test_", 5) == 0 ? name + 5 : name;
}

static TCase *tcase(struct suite_case *c)
{
	if (c->tc != NULL)
		return c->tc;
	c->tc = tcase_create(c->name != NULL ? c->name : subject());
	if (c->setup != NULL || c->teardown != NULL)
		tcase_add_checked_fixture(c->tc, c->setup, c->teardown);
	if (c->seconds != 0)
		tcase_set_timeout(c->tc, c->seconds > 0 ? c->seconds : 0);
	if (suite == NULL)
		suite = suite_create(subject());
	suite_add_tcase(suite, c->tc);
	return c->tc;
}

void suite_case(struct suite_case *c)
{
	now = c;
}

static void add(struct suite_case *c, const TTest *test,
    const struct suite_test *t)
{
	for (; c != NULL; c = c->also)
		if (!c->is_left_out)
			_tcase_add_test(tcase(c), test, t->signal, t->exit,
			    t->from, t->from + t->times);
}

void suite_test(const TTest *test, const struct suite_test *t)
{
	/* An empty table must not look like a test that has passed. */
	if (t->times < 1) {
		fprintf(stderr, "%s would run %d times\n", test->name,
		    t->times);
		abort();
	}
	add(t->in != NULL ? t->in : now, test, t);
	add(t->also, test, t);
}

int main(void)
{
	const char *chosen = getenv("CK_RUN_CASE");
	SRunner *runner = srunner_create(suite);
	int nr_failed;

	srunner_run_all(runner, CK_ENV);
	nr_failed = srunner_ntests_failed(runner);
	if (chosen != NULL && srunner_ntests_run(runner) == 0) {
		fprintf(stderr, "no test runs in a case %s\n", chosen);
		nr_failed = 1;
	}
	srunner_free(runner);
	return nr_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
