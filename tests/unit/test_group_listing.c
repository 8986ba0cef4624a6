/*
 * Proves that refd-group takes only refs from the answer of git ls-remote,
 * whose bytes another node has chosen, and sees its own refs as other nodes do.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/group/service/listing.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define ID      "0123456789abcdef0123456789abcdef01234567"
#define ID256   ID "0123456789abcdef01234567"
#define LINE(x) ID "\trefs/heads/" x "\n"

static struct listing listing;
static struct text why;

static bool parse(const char *answer, size_t len)
{
	listing_done(&listing);
	text_done(&why);
	text_add(&listing.text, answer, len);
	return listing_parse(&listing, &why);
}

static void assert_wrong(const char *answer)
{
	bool is_right = parse(answer, strlen(answer));

	ck_assert_msg(!is_right, "%s", answer);
	ck_assert_str_eq(why.data, "git has printed something that is no ref");
}

static void assert_right(const char *answer, size_t nr)
{
	bool is_right = parse(answer, strlen(answer));

	ck_assert_msg(is_right, "%s: %s", answer, why.data);
	ck_assert_uint_eq(listing.nr, nr);
}

static void setup(void)
{
	tmp_setup();
	ck_assert_int_eq(chdir(tmp_root), 0);
}

static void teardown(void)
{
	tmp_teardown();
	listing_done(&listing);
	text_done(&why);
}

CASE(.setup = setup, .teardown = teardown);

TEST(only_refs_are_taken)
{
	static const char answer[] = LINE("b") LINE("a/x") ID
	    "\trefs/refd/diverged/7/heads/a\n" LINE("a-");
	struct text values = { 0 };

	assert_right(answer, 3);
	ck_assert_str_eq(listing.refs[0].name, "refs/heads/a-");
	ck_assert_str_eq(listing.refs[1].name, "refs/heads/a/x");
	ck_assert_str_eq(listing.refs[2].name, "refs/heads/b");
	ck_assert_str_eq(listing.refs[2].value, ID);
	ck_assert_int_eq(listing_format(&listing), REFD_FORMAT_SHA1);
	listing_add_values(&listing, &values);
	ck_assert_str_eq(values.data, ID "\n" ID "\n" ID "\n");
	text_done(&values);
	assert_right("", 0);
	assert_right(ID256 "\trefs/heads/a\n", 1);
	ck_assert_int_eq(listing_format(&listing), REFD_FORMAT_SHA256);
}

TEST(wrong_answers_are_refused)
{
	char *nul = xasprintf("%s%s", LINE("a"), LINE("b"));

	assert_wrong("x");
	assert_wrong(ID);
	assert_wrong(ID "\t\n");
	assert_wrong(ID " refs/heads/a\n");
	assert_wrong(ID "\tHEAD\n");
	assert_wrong(ID "\t../refs/heads/a\n");
	assert_wrong(LINE("../../config"));
	assert_wrong(LINE("a.lock"));
	assert_wrong(LINE("a\x1b[2J"));
	assert_wrong(LINE("a\tb"));
	assert_wrong("0" LINE("a"));
	assert_wrong("--upload-pack=x\trefs/heads/a\n");
	assert_wrong("\trefs/heads/a\n");
	assert_wrong(LINE("a") LINE("b") LINE("a"));
	assert_wrong(LINE("a") ID256 "\trefs/heads/b\n");
	nul[strlen(LINE("a")) - 1] = '\0';
	ck_assert(!parse(nul, strlen(LINE("a")) + strlen(LINE("b"))));
	free(nul);
}

/* By the settings of the machine. A symbolic ref has the value of its target.
 */
TEST(refs_are_as_others_see_them)
{
	const struct fetch_site site = { .dir = "git" };
	const struct fetch_wish wish = { .source = tmp_root,
		.source_path = "a b.git",
		.path = "a b.git",
		.cancel = -1 };
	static const char *const names[] = { "refs/heads/main",
		"refs/heads/symbolic" };
	size_t i;

	fetch_dirs_make("git");
	tmp_put(".gitconfig", "[transfer]\n\thideRefs = refs/hidden\n");
	tmp_run("git init -q --bare 'a b.git' && cd 'a b.git' && "
		"tree=$(git mktree </dev/null) && "
		"commit=$(git commit-tree $tree -m x) && "
		"for ref in heads/main hidden/x refd/x; do "
		"git update-ref refs/$ref $commit || exit 1; done && "
		"git symbolic-ref refs/heads/symbolic refs/heads/main");
	ck_assert_msg(listing_read(&listing, &site, &wish, &why), "%s",
	    why.data);
	ck_assert_uint_eq(listing.nr, 2);
	for (i = 0; i < 2; i++)
		ck_assert_str_eq(listing.refs[i].name, names[i]);
	ck_assert_str_eq(listing.refs[0].value, listing.refs[1].value);
}

/* Sorted, as git has them, and in reverse. */
TEST(many_refs)
{
	struct text answer = { 0 };
	int i;

	for (i = 0; i < 100000; i++)
		text_addf(&answer, ID "\trefs/tags/%06d\n",
		    i % 2 ? i : 200000 - i);
	assert_right(answer.data, 100000);
	for (i = 1; i < 100000; i++)
		ck_assert_int_lt(
		    strcmp(listing.refs[i - 1].name, listing.refs[i].name), 0);
	text_done(&answer);
}
