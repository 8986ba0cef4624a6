/*
 * Proves that the refs of a look stay as they were if memory for a ref is
 * missing, whichever allocation fails, and whether the ref is new or not.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/looking/seen_refs.h"
#include "tests/lib/failing_malloc.h"
#include "tests/lib/suite.h"

/* -1: none fails. */
static long allocations, fail_at = -1;
static struct seen_refs *refs;
/* NAME=TARGET of each, in the order of the refs. */
static char text[200];

#if CAN_FAIL

static bool may_allocate(void)
{
	return fail_at < 0 || allocations++ != fail_at;
}

#endif

/* TARGET NULL: no value. */
static int set(const char *name, const char *target)
{
	const struct seen_ref ref = { .name = name, .target = target };

	return seen_refs_set(refs, &ref);
}

static const char *all(void)
{
	const struct seen_ref *ref;
	size_t len = 0;

	text[0] = '\0';
	for (ref = seen_refs_next(refs, NULL); ref != NULL;
	    ref = seen_refs_next(refs, ref)) {
		ck_assert_ptr_eq(seen_refs_find(refs, ref->name), ref);
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%s=%s ", ref->name, ref->target);
	}
	return text;
}

static void setup(void)
{
	refs = seen_refs_new(SEEN_REFS_MAX);
	ck_assert_ptr_nonnull(refs);
	ck_assert_int_eq(set("b", "1"), 0);
	ck_assert_int_eq(set("a", "2"), 0);
	ck_assert_int_eq(set("c", "3"), 0);
}

static void teardown(void)
{
	seen_refs_free(refs);
}

static int set_without_memory(long at, const char *name)
{
	int r;

	allocations = 0;
	fail_at = at;
	r = set(name, "4");
	fail_at = -1;
	return r;
}

/* Sets NAME until memory suffices. At least LEAST attempts have failed. */
static void fail_each(const char *name, long least)
{
	long n = 0;

	while (set_without_memory(n, name) == -ENOMEM) {
		ck_assert_str_eq(all(), "b=1 a=2 c=3 ");
		n++;
	}
	ck_assert(!CAN_FAIL || n >= least);
}

/* A ref, and its place in the tree. */
START_TEST(a_new_ref)
{
	fail_each("d", 2);
	ck_assert_str_eq(all(), "b=1 a=2 c=3 d=4 ");
}
END_TEST

START_TEST(another_value)
{
	fail_each("a", 1);
	ck_assert_str_eq(all(), "b=1 c=3 a=4 ");
}
END_TEST

/* Without memory, too. */
START_TEST(no_value)
{
	allocations = fail_at = 0;
	ck_assert_int_eq(set("b", NULL), 0);
	ck_assert_int_eq(set("x", NULL), 0);
	fail_at = -1;
	ck_assert_str_eq(all(), "a=2 c=3 ");
	ck_assert_ptr_null(seen_refs_find(refs, "b"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("seen_refs");
	TCase *tc = tcase_create("seen_refs");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_new_ref);
	tcase_add_test(tc, another_value);
	tcase_add_test(tc, no_value);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
