/*
 * Proves that the list of the busiest is in order, with their recent work and
 * nothing older. Any number of users who come once do not push out a busy user.
 * A long name keeps its end.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/scheduler/busy.h"
#include "tests/lib/suite.h"

#define S 1000000000LL

static struct busy busy;

static void setup(void)
{
	memset(&busy, 0, sizeof(busy));
}

CASE(.setup = setup);

TEST(test_order)
{
	struct busy_one list[2];
	int64_t span;
	int i;

	for (i = 0; i < 3; i++)
		busy_count(&busy, "a", 1, 100 * S);
	busy_count(&busy, "b", 50, 101 * S);
	busy_count(&busy, "c", 60, 101 * S);
	ck_assert_uint_eq(busy_list(&busy, 102 * S, list, 2, &span), 2);
	ck_assert_str_eq(list[0].name, "a");
	ck_assert_uint_eq(list[0].txns, 3);
	ck_assert_uint_eq(list[0].refs, 3);
	ck_assert_str_eq(list[1].name, "c");
	ck_assert_uint_eq(list[1].refs, 60);
	ck_assert_int_eq(span, 7 * S);
}

TEST(test_age)
{
	struct busy_one list[4];
	int64_t span;

	busy_count(&busy, "a", 1, 100 * S);
	busy_count(&busy, "a", 1, 106 * S);
	ck_assert_uint_eq(busy_list(&busy, 107 * S, list, 4, &span), 1);
	ck_assert_uint_eq(list[0].txns, 2);
	ck_assert_uint_eq(busy_list(&busy, 111 * S, list, 4, &span), 1);
	ck_assert_uint_eq(list[0].txns, 1);
	ck_assert_uint_eq(busy_list(&busy, 116 * S, list, 4, &span), 0);
}

TEST(test_crowd)
{
	struct busy_one list[BUSY_SLOTS];
	char name[32];
	int64_t span;
	int i;

	for (i = 0; i < 20000; i++) {
		busy_count(&busy, "busy", 1, 100 * S);
		snprintf(name, sizeof(name), "%d", i);
		busy_count(&busy, name, 1, 100 * S);
	}
	ck_assert_uint_le(busy_list(&busy, 100 * S, list, BUSY_SLOTS, &span),
	    BUSY_SLOTS);
	ck_assert_str_eq(list[0].name, "busy");
	ck_assert_uint_eq(list[0].txns, 20000);
}

TEST(test_long_name)
{
	struct busy_one list[1];
	char name[300];
	int64_t span;

	memset(name, 'x', sizeof(name) - 1);
	strcpy(name + sizeof(name) - 7, "/a.git");
	busy_count(&busy, name, 1, 100 * S);
	busy_count(&busy, name, 1, 100 * S);
	ck_assert_uint_eq(busy_list(&busy, 100 * S, list, 1, &span), 1);
	ck_assert_uint_eq(list[0].txns, 2);
	ck_assert_uint_eq(strlen(list[0].name), BUSY_NAME - 1);
	ck_assert_ptr_nonnull(strstr(list[0].name, "/a.git"));
}
