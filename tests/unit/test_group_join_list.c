/*
 * Proves that refd group join takes only complete lists of repositories with
 * right paths, from answers whose bytes anybody in the database can choose.
 */
#include <check.h>
#include <string.h>

#include "daemon/group/service/join_list.h"
#include "tests/lib/suite.h"

#define A "0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210"

static struct join_list list;

static void teardown(void)
{
	join_list_done(&list);
}

static void assert_said(enum join_list_said said, const char *line)
{
	ck_assert_msg(join_list_take(&list, line) == said, "%s", line);
}

START_TEST(a_list)
{
	const struct join_repo *repo;

	assert_said(JOIN_LIST_MORE, "busy");
	assert_said(JOIN_LIST_MORE, B " sha256 shown 622f632e676974");
	assert_said(JOIN_LIST_MORE, A " sha1 hidden 6120ff");
	assert_said(JOIN_LIST_PARTIAL, "end 1");
	assert_said(JOIN_LIST_PARTIAL, "end 3");
	assert_said(JOIN_LIST_PARTIAL, "end ");
	assert_said(JOIN_LIST_PARTIAL, "end 2x");
	assert_said(JOIN_LIST_END, "end 2");
	repo = join_list_find(&list, A);
	ck_assert_ptr_eq(repo, list.repos);
	ck_assert_str_eq(repo->path, "a \xff");
	ck_assert_int_eq(repo->format, REFD_FORMAT_SHA1);
	ck_assert(strstr(repo->fault, "hides refs"));
	repo = join_list_find(&list, B);
	ck_assert_str_eq(repo->path, "b/c.git");
	ck_assert_int_eq(repo->format, REFD_FORMAT_SHA256);
	ck_assert_ptr_null(repo->fault);
	ck_assert_ptr_null(join_list_find(&list, "x"));
}
END_TEST

START_TEST(an_empty_list)
{
	assert_said(JOIN_LIST_FAILED, "failed");
	assert_said(JOIN_LIST_PARTIAL, "end x");
	assert_said(JOIN_LIST_END, "end 0");
	ck_assert_ptr_null(join_list_find(&list, A));
}
END_TEST

START_TEST(wrong_lines_are_refused)
{
	static const char *const lines[] = { "", "end", "busy 1", A,
		A " sha1 shown", A " sha1 shown ", "0" A " sha1 shown 61",
		A "0 sha1 shown 61", "0 sha1 shown 61", A " md5 shown 61",
		A " sha1 seen 61", A " sha1 shownshownshownshown 61",
		/* Half a byte, no digits, and bytes of no path. */
		A " sha1 shown 6", A " sha1 shown 616", A " sha1 shown 0x61",
		A " sha1 shown +1", A " sha1 shown 6g", A " sha1 shown 610062",
		A " sha1 shown 2f61", A " sha1 shown 612f",
		A " sha1 shown 2e2e", A " sha1 shown 612f2e2e2f62",
		A " sha1 shown 2e" };
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_said(JOIN_LIST_WRONG, lines[i]);
	ck_assert_uint_eq(list.nr, 0);
}
END_TEST

START_TEST(a_list_has_an_end)
{
	size_t i;

	for (i = 0; i < JOIN_LIST_MAX; i++)
		join_list_take(&list, A " sha1 shown 61");
	ck_assert_uint_eq(list.nr, JOIN_LIST_MAX);
	assert_said(JOIN_LIST_WRONG, A " sha1 shown 61");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_join_list");
	TCase *tc = tcase_create("group_join_list");

	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_test(tc, a_list);
	tcase_add_test(tc, an_empty_list);
	tcase_add_test(tc, wrong_lines_are_refused);
	tcase_add_test(tc, a_list_has_an_end);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
