/*
 * Proves that refd group join takes only complete lists of repositories with
 * right paths, from answers whose bytes anybody in the database can choose. In
 * the next list a copy counts only as long as nothing shows that it can lack
 * refs, and a repository is missed unless all its refs come by rows. One that a
 * list before the first copy has named is missed until it is copied, also if
 * later lists do not name it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/service/join_list.h"
#include "tests/lib/suite.h"

#define A "0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210"

static struct join_list list, old;
static char left[64];

static void teardown(void)
{
	join_list_done(&list);
	join_list_done(&old);
}

static void assert_said(enum join_list_said said, const char *line)
{
	ck_assert_msg(join_list_take(&list, line) == said, "%s", line);
}

CASE(.teardown = teardown);

TEST(a_list)
{
	const struct join_repo *repo;

	assert_said(JOIN_LIST_MORE, "busy");
	assert_said(JOIN_LIST_MORE, "unnamed 12");
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
	ck_assert_uint_eq(list.nr_unnamed, 12);
}

/* Another repository of the leader could have the uuid. */
TEST(an_id_that_others_may_write)
{
	assert_said(JOIN_LIST_MORE, A " sha1 open 61");
	assert_said(JOIN_LIST_END, "end 1");
	ck_assert(strstr(join_list_find(&list, A)->fault, "others may write"));
}

TEST(an_empty_list)
{
	assert_said(JOIN_LIST_FAILED, "failed");
	assert_said(JOIN_LIST_PARTIAL, "end x");
	assert_said(JOIN_LIST_END, "end 0");
	ck_assert_ptr_null(join_list_find(&list, A));
}

TEST(wrong_lines_are_refused)
{
	static const char *const lines[] = { "", "end", "busy 1", "unnamed",
		"unnamed ", "unnamed -1", "unnamed 1x", A, A " sha1 shown",
		A " sha1 shown ", "0" A " sha1 shown 61", A "0 sha1 shown 61",
		"0 sha1 shown 61", A " md5 shown 61", A " sha1 seen 61",
		A " sha1 shownshownshownshown 61",
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

/* ---- the next list ---- */

static void note_left(void *arg, const struct join_repo *was)
{
	ck_assert_ptr_eq(arg, &list);
	snprintf(left, sizeof(left), "%s", was->path);
}

/* The next list, behind the first copy, names LINE alone; NULL: nothing. */
static size_t follow_line(const char *line)
{
	join_list_done(&old);
	old = list;
	list = (struct join_list){ .nr = 0 };
	*left = '\0';
	if (line)
		assert_said(JOIN_LIST_MORE, line);
	assert_said(JOIN_LIST_END, line ? "end 1" : "end 0");
	return join_list_follow(&list, &old, true, note_left, &list);
}

/* The list before had A at "a". STATE and the path: of A now. */
static size_t follow(bool was_copied, const char *was_state, const char *state,
    const char *path, bool are_late)
{
	char *line = xasprintf(A " sha1 %s 61", was_state);

	teardown();
	*left = '\0';
	assert_said(JOIN_LIST_MORE, line);
	assert_said(JOIN_LIST_END, "end 1");
	list.repos[0].is_copied = was_copied;
	text_adds(&list.repos[0].values, "v");
	old = list;
	list = (struct join_list){ .nr = 0 };
	free(line);
	line = xasprintf(A " sha1 %s %s", state, path);
	assert_said(JOIN_LIST_MORE, line);
	assert_said(JOIN_LIST_MORE, B " sha1 shown 62");
	assert_said(JOIN_LIST_END, "end 2");
	free(line);
	return join_list_follow(&list, &old, are_late, note_left, &list);
}

TEST(a_copy_counts_in_the_next_list)
{
	ck_assert_uint_eq(follow(true, "shown", "shown", "61", false), 1);
	ck_assert(list.repos[0].is_copied && !list.repos[1].is_copied);
	ck_assert_str_eq(list.repos[0].values.data, "v");
	ck_assert_ptr_null(old.repos[0].values.data);
	ck_assert_str_eq(left, "");
	ck_assert(!join_list_is_missed(&list.repos[0]));
	ck_assert(join_list_is_missed(&list.repos[1]));
	/* The copy has failed. */
	ck_assert_uint_eq(follow(false, "shown", "shown", "61", false), 2);
	ck_assert(join_list_is_missed(&list.repos[0]));
	ck_assert_str_eq(left, "");
}

/* Renamed; or with a reason to leave refs out, perhaps since the copy. */
TEST(a_doubtful_copy_is_none, .times = 7)
{
	static const char *const now[][2] = { { "shown", "62" },
		{ "hidden", "61" }, { "shallow", "61" }, { "unreadable", "61" },
		{ "importing", "61" }, { "long", "61" }, { "open", "61" } };

	ck_assert_uint_eq(follow(true, "shown", now[_i][0], now[_i][1], false),
	    _i == 0 ? 2 : 1);
	ck_assert(!list.repos[0].is_copied);
	ck_assert_ptr_null(list.repos[0].values.data);
	ck_assert_str_eq(left, "a");
	ck_assert(join_list_is_missed(&list.repos[0]));
}

TEST(what_comes_by_rows_is_not_missed)
{
	/* The mark of an import can be older than its row. */
	ck_assert_uint_eq(follow(false, "importing", "importing", "61", true),
	    1);
	ck_assert(join_list_is_missed(&list.repos[0]));
	ck_assert(!join_list_is_missed(&list.repos[1]));
	/* A late one stays late. */
	ck_assert(list.repos[1].is_late);
	ck_assert_uint_eq(follow_line(B " sha1 hidden 62"), 0);
	ck_assert_uint_eq(list.nr, 2);
	ck_assert(!join_list_is_missed(&list.repos[1]));
}

/* The leader misses a repository that is renamed during its search. */
TEST(a_gone_one_is_missed)
{
	follow(true, "shown", "shown", "61", true);
	ck_assert_uint_eq(follow_line(NULL), 0);
	/* Of the late one all rows come. */
	ck_assert_uint_eq(list.nr, 1);
	ck_assert_str_eq(list.repos[0].hex, A);
	ck_assert_str_eq(list.repos[0].path, "a");
	ck_assert_str_eq(left, "a");
	ck_assert(list.repos[0].is_gone);
	ck_assert(strstr(list.repos[0].fault, "does not name it"));
	ck_assert(join_list_is_missed(&list.repos[0]));
	ck_assert_uint_eq(follow_line(NULL), 0);
	ck_assert_str_eq(left, "");
	ck_assert(join_list_is_missed(&list.repos[0]));
	/* It is here again, and is copied. */
	ck_assert_uint_eq(follow_line(A " sha1 shown 61"), 1);
	ck_assert_uint_eq(list.nr, 1);
	ck_assert(!list.repos[0].is_late && !list.repos[0].is_gone);
	ck_assert(join_list_is_missed(&list.repos[0]));
	list.repos[0].is_copied = true;
	ck_assert_uint_eq(follow_line(A " sha1 shown 61"), 0);
	ck_assert(!join_list_is_missed(&list.repos[0]));
}

TEST(a_list_has_an_end)
{
	size_t i;

	for (i = 0; i < JOIN_LIST_MAX; i++)
		join_list_take(&list, A " sha1 shown 61");
	ck_assert_uint_eq(list.nr, JOIN_LIST_MAX);
	assert_said(JOIN_LIST_WRONG, A " sha1 shown 61");
}
