/*
 * Proves that a quoted name in a log is one line of printable characters,
 * whatever the name is. No escape sequence and no control character of either
 * set is left. The quote is closed even after a cut, and no cut is within an
 * escape or a character.
 */
#include <check.h>
#include <string.h>

#include "daemon/base/quote.h"
#include "tests/lib/suite.h"

static void expect(const char *name, const char *wanted)
{
	char buf[256];

	ck_assert_str_eq(quote(buf, sizeof(buf), name), wanted);
}

START_TEST(test_plain)
{
	expect("", "\"\"");
	expect("refs/heads/main", "\"refs/heads/main\"");
	expect("a b=c", "\"a b=c\"");
	expect("gr\303\274n \342\202\254 \360\237\220\261",
	    "\"gr\303\274n \342\202\254 \360\237\220\261\"");
}
END_TEST

START_TEST(test_escapes)
{
	expect("a\"b\\c\nd\te", "\"a\\\"b\\\\c\\nd\\te\"");
	expect("\033[2Jx\r\007", "\"\\x1b[2Jx\\x0d\\x07\"");
	expect("\177", "\"\\x7f\"");
	/* The same in eight bits, and as UTF-8. */
	expect("\2332J", "\"\\x9b2J\"");
	expect("\302\2332J", "\"\\xc2\\x9b2J\"");
	expect("\302\240", "\"\302\240\"");
	/* Broken off, overlong, alone. */
	expect("\342\202", "\"\\xe2\\x82\"");
	expect("\300\257", "\"\\xc0\\xaf\"");
	expect("\200x", "\"\\x80x\"");
}
END_TEST

START_TEST(test_cut)
{
	char buf[16], exact[6];
	size_t size;

	for (size = 3; size <= sizeof(buf); size++) {
		quote(buf, size, "\033\033\"\303\274aaaaaaaaaaaaaa");
		ck_assert_uint_lt(strlen(buf), size);
		ck_assert_int_eq(buf[strlen(buf) - 1], '"');
	}
	quote(buf, 6, "\033");
	ck_assert_str_eq(buf, "\"\"");
	quote(buf, 7, "\033");
	ck_assert_str_eq(buf, "\"\\x1b\"");
	quote(exact, sizeof(exact), "abc");
	ck_assert_str_eq(exact, "\"abc\"");
	quote(exact, sizeof(exact), "ab\303\274");
	ck_assert_str_eq(exact, "\"ab\"");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("quote");
	TCase *tc = tcase_create("quote");

	tcase_add_test(tc, test_plain);
	tcase_add_test(tc, test_escapes);
	tcase_add_test(tc, test_cut);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
