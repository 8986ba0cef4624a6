/*
 * Proves that the group knows each repository that a node lacks, whatever bytes
 * a path has: no path looks like a list, or hides a repository in a list.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/service/damage.h"
#include "tests/lib/suite.h"

static void assert_path(const char *path, const char *wanted)
{
	char *got = damage_path(path);

	ck_assert_str_eq(got, wanted);
	free(got);
}

TEST(paths)
{
	assert_path("team/a b.git", "team/a b.git");
	assert_path("\n50%\x7f\xff.git\n", "%0a50%25%7f%ff.git%0a");
	ck_assert(!damage_is_list("team/a b.git"));
}

#define A "0123456789abcdef0123456789abcdef"
#define B "1123456789abcdef0123456789abcdef"
#define C "2123456789abcdef0123456789abcdef"
/* Of the join. */
#define JOIN "cc5dc4d9-d64a-4d3e-9d8c-1b1a4ee6ff5b"

static char hex[FETCH_ID_HEX + 1];

static void assert_next(const struct text *list, size_t *at, const char *uuid,
    const char *path)
{
	char *got = damage_next_absent(list->data, at, hex);

	ck_assert_str_eq(got, path);
	ck_assert_str_eq(hex, uuid);
	free(got);
}

TEST(lists)
{
	struct text list = { 0 };
	size_t at = 0;

	damage_add_absent(&list, A, "x.git");
	damage_add_absent(&list, B, "a/x y.git");
	/* Another repository cannot hide one, or take one out. */
	damage_add_absent(&list, C, "x\n" A " x.git\n");
	ck_assert_str_eq(list.data,
	    "\n" A " x.git\n" B " a/x y.git\n" C " x%0a" A " x.git%0a\n");
	text_adds(&list, JOIN);
	ck_assert(damage_is_list(list.data));
	assert_next(&list, &at, A, "x.git");
	assert_next(&list, &at, B, "a/x y.git");
	assert_next(&list, &at, C, "x%0a" A " x.git%0a");
	ck_assert_ptr_null(damage_next_absent(list.data, &at, hex));
	damage_drop_absent(list.data, A);
	damage_drop_absent(list.data, A);
	ck_assert_str_eq(list.data,
	    "\n" B " a/x y.git\n" C " x%0a" A " x.git%0a\n" JOIN);
	damage_drop_absent(list.data, C);
	ck_assert_str_eq(list.data, "\n" B " a/x y.git\n" JOIN);
	damage_drop_absent(list.data, B);
	ck_assert_str_eq(list.data, "");
	at = 0;
	ck_assert_ptr_null(damage_next_absent(list.data, &at, hex));
	text_done(&list);
}
