/*
 * Proves that no bytes which a terminal obeys are left in a text for people,
 * whatever the bytes are, and that a character is never cut. The same bytes are
 * escaped in a log, where the quote is closed even after a cut, and in JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/lib/print.h"
#include "proto/utf8.h"
#include "tests/lib/suite.h"

static const struct {
	const char *name, *line, *quoted, *json;
} texts[] = {
	{ "", "", "", "" },
	{ "refs/heads/main", "refs/heads/main", "refs/heads/main",
	    "refs/heads/main" },
	{ "gr\303\274n \342\202\254 \360\237\220\261",
	    "gr\303\274n \342\202\254 \360\237\220\261",
	    "gr\303\274n \342\202\254 \360\237\220\261",
	    "gr\303\274n \342\202\254 \360\237\220\261" },
	{ "a\"b\\c\nd\te", "a\"b\\c d e", "a\\\"b\\\\c\\nd\\te",
	    "a\\\"b\\\\c\\u000ad\\u0009e" },
	{ "\033[2Jx\r\007\177", "?[2Jx???", "\\x1b[2Jx\\x0d\\x07\\x7f",
	    "\\u001b[2Jx\\u000d\\u0007\\u007f" },
	/* CSI in eight bits, and as UTF-8. */
	{ "\2332J", "?2J", "\\x9b2J", "\\ufffd2J" },
	{ "\302\2332J", "?2J", "\\xc2\\x9b2J", "\\u009b2J" },
	{ "\302\240", "\302\240", "\302\240", "\302\240" },
	/* Directions: U+061C, U+200E, U+202E, U+2066, and ends of a line. */
	{ "\330\234\342\200\216", "??", "\\xd8\\x9c\\xe2\\x80\\x8e",
	    "\\u061c\\u200e" },
	{ "\342\200\256x\342\201\246", "?x?", "\\xe2\\x80\\xaex\\xe2\\x81\\xa6",
	    "\\u202ex\\u2066" },
	{ "\342\200\250\342\200\251", "??", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9",
	    "\\u2028\\u2029" },
	/* Their neighbours are letters and dashes. */
	{ "\342\200\215\342\200\220\342\200\257\342\201\252",
	    "\342\200\215\342\200\220\342\200\257\342\201\252",
	    "\342\200\215\342\200\220\342\200\257\342\201\252",
	    "\342\200\215\342\200\220\342\200\257\342\201\252" },
	/* Broken off, overlong, alone, a surrogate, too high. */
	{ "\342\202", "??", "\\xe2\\x82", "\\ufffd\\ufffd" },
	{ "\300\257", "??", "\\xc0\\xaf", "\\ufffd\\ufffd" },
	{ "\200x", "?x", "\\x80x", "\\ufffdx" },
	{ "\355\240\200", "???", "\\xed\\xa0\\x80", "\\ufffd\\ufffd\\ufffd" },
	{ "\364\220\200\200", "????", "\\xf4\\x90\\x80\\x80",
	    "\\ufffd\\ufffd\\ufffd\\ufffd" },
};

#define NR (sizeof(texts) / sizeof(texts[0]))

static void expect(enum print_as as, const char *name, const char *wanted)
{
	size_t size = 0;
	char *all = NULL;
	FILE *to = open_memstream(&all, &size);

	print_text(to, as, name, strlen(name));
	ck_assert_int_eq(fclose(to), 0);
	ck_assert_str_eq(all, wanted);
	free(all);
}

TEST(each_form)
{
	char buf[256], wanted[256];
	size_t i;

	for (i = 0; i < NR; i++) {
		expect(PRINT_AS_LINE, texts[i].name, texts[i].line);
		expect(PRINT_AS_QUOTED, texts[i].name, texts[i].quoted);
		expect(PRINT_AS_JSON, texts[i].name, texts[i].json);
		snprintf(wanted, sizeof(wanted), "\"%s\"", texts[i].quoted);
		ck_assert_str_eq(print_quoted(buf, sizeof(buf), texts[i].name),
		    wanted);
	}
	expect(PRINT_AS_LINES, "a\n\tb\r\033", "a\n\tb??");
}

/* Longer than each buffer, with the hostile character at every place. */
TEST(long_texts)
{
	static char name[3 * PRINT_ROOM], wanted[3 * PRINT_ROOM];
	size_t size, at;
	char *all;
	FILE *to;

	for (at = PRINT_ROOM - 8; at < PRINT_ROOM + 8; at++) {
		memset(name, 'x', sizeof(name) - 1);
		memcpy(name + at, "\342\200\256", 3);
		memset(wanted, 'x', sizeof(wanted) - 3);
		wanted[at] = '?';
		wanted[sizeof(wanted) - 3] = '\n';
		to = open_memstream(&all, &size);
		print_line(to, "%s", name);
		ck_assert_int_eq(fclose(to), 0);
		ck_assert_str_eq(all, wanted);
		free(all);
	}
}

TEST(a_cut)
{
	char buf[16], exact[6];
	size_t size;

	for (size = 3; size <= sizeof(buf); size++) {
		print_quoted(buf, size, "\033\033\"\303\274aaaaaaaaaaaaaa");
		ck_assert_uint_lt(strlen(buf), size);
		ck_assert_int_eq(buf[strlen(buf) - 1], '"');
	}
	print_quoted(buf, 6, "\033");
	ck_assert_str_eq(buf, "\"\"");
	print_quoted(buf, 7, "\033");
	ck_assert_str_eq(buf, "\"\\x1b\"");
	print_quoted(exact, sizeof(exact), "abc");
	ck_assert_str_eq(exact, "\"abc\"");
	print_quoted(exact, sizeof(exact), "ab\303\274");
	ck_assert_str_eq(exact, "\"ab\"");
	/* A byte less, and nothing behind the cut. */
	print_quoted(exact, 5, "a\303\274b");
	ck_assert_str_eq(exact, "\"a\"");
}

TEST(characters)
{
	static const char name[] = "a\303\274\342\202\254\200\360\237\220\261";

	ck_assert_uint_eq(utf8_width(name), 5);
	ck_assert_uint_eq(utf8_skip(name, 0), 0);
	ck_assert_uint_eq(utf8_skip(name, 2), 3);
	ck_assert_uint_eq(utf8_skip(name, 3), 6);
	ck_assert_uint_eq(utf8_skip(name, 4), 7);
	ck_assert_uint_eq(utf8_skip(name, 9), 11);
	ck_assert_uint_eq(utf8_cut(name, 0), 0);
	ck_assert_uint_eq(utf8_cut(name, 2), 1);
	ck_assert_uint_eq(utf8_cut(name, 5), 3);
	ck_assert_uint_eq(utf8_cut(name, 10), 7);
	ck_assert_uint_eq(utf8_cut(name, 99), 11);
}
