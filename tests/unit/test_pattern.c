/*
 * Proves that a pattern matches the right refs: by examples, against the
 * written rule for all short patterns and names, and for patterns that are
 * designed to take long.
 */
#include <string.h>

#include "proto/limits.h"
#include "proto/pattern.h"
#include "tests/lib/suite.h"

TEST(examples)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} rows[] = {
		{ "refs/heads/main", "refs/heads/main", true },
		{ "refs/heads/main", "refs/heads/main2", false },
		{ "refs/heads/main", "refs/heads/mai", false },
		{ "refs/heads/", "refs/heads/main", true },
		{ "refs/heads/", "refs/heads/a/b", true },
		{ "refs/heads/", "refs/head", false },
		{ "refs/heads", "refs/heads/main", false },
		{ "refs/*/", "refs/heads/main", false },
		{ "*", "", true },
		{ "*", "HEAD", true },
		{ "", "HEAD", false },
		{ "", "", true },
		{ "refs/tags/v*", "refs/tags/v1/2", true },
		{ "refs/tags/v*", "refs/tags/w", false },
		{ "refs/*/main", "refs/a/b/main", true },
		{ "refs/*/main", "refs/main", false },
		{ "*a*b", "aaab", true },
		{ "*a*b", "aaba", false },
		{ "*ab*ab", "abab", true },
		{ "?EAD", "HEAD", true },
		{ "HEAD?", "HEAD", false },
		{ "H[E]AD", "HEAD", false },
		{ "a**", "a", true },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(refd_pattern_matches(rows[i].pattern,
				  rows[i].name) == rows[i].matches,
		    "%s %s", rows[i].pattern, rows[i].name);
	ck_assert(refd_pattern_is_name("refs/heads/a"));
	ck_assert(!refd_pattern_is_name("refs/heads/"));
	ck_assert(!refd_pattern_is_name("refs/?"));
	ck_assert_uint_eq(refd_pattern_literal("refs/v*"), 6);
	ck_assert_uint_eq(refd_pattern_literal("refs/"), 5);
}

/* The rule of PROTOCOL.md, written out; slow. */
static bool glob_means(const char *pattern, const char *name)
{
	if (*pattern == '\0')
		return *name == '\0';
	if (*pattern == '*')
		return glob_means(pattern + 1, name) ||
		    (*name != '\0' && glob_means(pattern, name + 1));
	return *name != '\0' && (*pattern == '?' || *pattern == *name) &&
	    glob_means(pattern + 1, name + 1);
}

/* Text number NR of all texts of LEN of these BYTES, behind PAD. */
static void spell(char *text, unsigned nr, unsigned len, const char *bytes,
    char pad, unsigned pads)
{
	unsigned kinds = (unsigned)strlen(bytes), i;

	memset(text, pad, pads);
	for (i = 0; i < len; i++, nr /= kinds)
		text[pads + i] = bytes[nr % kinds];
	text[pads + len] = '\0';
}

/* Also if the name starts at another offset in a machine word. */
TEST(each_means_what_the_rule_says)
{
	char pattern[100], name[100];
	unsigned p, n, pads;

	for (p = 0; p < 4 * 4 * 4 * 4 * 4; p++)
		for (n = 0; n < 2 * 2 * 2 * 2; n++)
			for (pads = 0; pads <= 63; pads += 21) {
				spell(pattern, p, 5, "ab*?", '?', pads);
				spell(name, n, 4, "ab", 'x', pads);
				ck_assert_msg(refd_pattern_matches(pattern,
						  name) ==
					glob_means(pattern + pads, name + pads),
				    "%s %s", pattern, name);
			}
}

/* Patterns that take other matchers for ever. history_fair.sh measures the
 * time. */
TEST(hostile_ones_are_answered)
{
	char name[REFD_REFNAME_MAX + 1], stars[REFD_REFNAME_MAX + 1];
	char runs[REFD_REFNAME_MAX + 1];
	unsigned i;

	memset(name, 'a', REFD_REFNAME_MAX);
	name[REFD_REFNAME_MAX] = '\0';
	for (i = 0; i + 1 < REFD_REFNAME_MAX; i += 2)
		memcpy(stars + i, "*a", 2);
	strcpy(stars + i - 1, "b");
	memset(runs, 'a', sizeof(runs));
	runs[0] = '*';
	strcpy(runs + REFD_REFNAME_MAX / 2, "?b");
	ck_assert(!refd_pattern_matches(stars, name));
	ck_assert(!refd_pattern_matches(runs, name));
	name[REFD_REFNAME_MAX - 1] = 'b';
	ck_assert(refd_pattern_matches(stars, name));
	ck_assert(refd_pattern_matches(runs, name));
}
