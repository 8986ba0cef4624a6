/*
 * The form of every unit test: its helpers and its tests, without a list and
 * without main(), because a test that a list forgets never runs.
 *
 *	CASE(.setup = setup, .teardown = teardown, .seconds = 60);
 *
 *	TEST(a_ref_is_updated)
 *	{
 *	}
 *
 *	TEST(each_call_fails, .times = NR_CALLS)
 *	{
 *		... _i ...
 *	}
 *
 * Constructors add the tests to the one suite of the program, in the order of
 * the file. CK_RUN_CASE=NAME runs the tests of one case, and fails if no test
 * runs.
 */
#ifndef TESTS_LIB_SUITE_H
#define TESTS_LIB_SUITE_H

#include <check.h>
#include <stdbool.h>

/* Constructors run before main(). The linker sorts them by their number, which
 * the line gives, because the compiler promises no order. The values in a TEST
 * or CASE are computed then, so they may call functions. */
#define SUITE_ADDS(name)                                                       \
	__attribute__((constructor(1000 + __LINE__))) static void name(void)
#define SUITE_JOIN_(a, b) a##b
#define SUITE_JOIN(a, b)  SUITE_JOIN_(a, b)

/* Begins a test, with the members of struct suite_test. Without TIMES it runs
 * once. */
#define TEST(test, ...)                                                        \
	static void test(int _i);                                              \
	SUITE_ADDS(suite_adds_##test)                                          \
	{                                                                      \
		static const TTest t = { #test, test, __FILE__, __LINE__ };    \
		_Pragma("GCC diagnostic push")                                 \
		    _Pragma("GCC diagnostic ignored \"-Woverride-init\"")      \
			suite_test(&t,                                         \
			    &(struct suite_test){ .times = 1, __VA_ARGS__ });  \
		_Pragma("GCC diagnostic pop")                                  \
	}                                                                      \
	static void test(int _i __attribute__((unused)))

/* Begins a case, with the members of struct suite_case. The tests below belong
 * to it, up to the next CASE. Above all CASEs it is a case without members. */
#define CASE(...)                                                              \
	SUITE_ADDS(SUITE_JOIN(suite_begins_, __LINE__))                        \
	{                                                                      \
		static struct suite_case c;                                    \
		c = (struct suite_case){ __VA_ARGS__ };                        \
		suite_case(&c);                                                \
	}                                                                      \
	struct suite_case

struct suite_case {
	const char *name;        /* NULL: that of the program */
	void (*setup)(void);     /* before each test, or NULL */
	void (*teardown)(void);  /* after each test, or NULL */
	int seconds;             /* a test's limit; 0: libcheck's, -1: none */
	bool is_left_out;        /* none of its tests runs */
	struct suite_case *also; /* each test belongs to this case too */
	TCase *tc;               /* for suite_main.c alone */
};

struct suite_test {
	int times; /* with _i from FROM on; less than 1 ends the program */
	int from;
	int signal;              /* the test must end by it; 0: by none */
	int exit;                /* the test must end with this status */
	struct suite_case *in;   /* NULL: in that of the CASE above */
	struct suite_case *also; /* and in this one, or NULL */
};

/* For the macros alone. */
void suite_case(struct suite_case *c);
void suite_test(const TTest *test, const struct suite_test *t);

/* Reports that TEST, or a part of TEST, does not run on this machine, and WHY.
 * scripts/run-tests counts the report. The caller returns, or does without the
 * part. A test skips at most once. */
void suite_skip(const char *test, const char *why);

/* True for root. Otherwise skips TEST: only root can be two users. */
bool suite_is_root(const char *test);

#endif
