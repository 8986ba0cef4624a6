/*
 * Proves that the manual lists exactly the causes of "busy", that every cause
 * has its own name and text, and that causes are counted separately.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "tests/lib/suite.h"

/* Tests are run from the root of the source tree. */
#define MANUAL  "client/admin/refd-stats.1"
#define SECTION ".Sh CAUSES OF BUSY\n"

static const char *read_section(void)
{
	static char text[64 * 1024];
	FILE *f = fopen(MANUAL, "r");
	char *section, *end;
	size_t len;

	ck_assert_msg(f != NULL, "no %s here", MANUAL);
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = '\0';
	section = strstr(text, SECTION);
	ck_assert_msg(section != NULL, "no %s in %s", SECTION, MANUAL);
	section += strlen(SECTION);
	end = strstr(section, "\n.Sh ");
	ck_assert_ptr_nonnull(end);
	end[1] = '\0';
	return section;
}

TEST(the_manual_lists_each_cause)
{
	const char *section = read_section(), *at = section;
	char item[64];
	size_t i, nr = 0;

	for (i = 0; i < BUSY_CAUSES; i++) {
		snprintf(item, sizeof(item), "\n.It Cm %s\n",
		    busy_cause_name(i));
		ck_assert_msg(strstr(section, item) != NULL,
		    "the manual lacks %s", busy_cause_name(i));
	}
	while ((at = strstr(at, "\n.It ")) != NULL) {
		at++;
		nr++;
	}
	ck_assert_uint_eq(nr, BUSY_CAUSES);
}

TEST(no_two_causes_are_told_alike)
{
	size_t i, k;

	for (i = 0; i < BUSY_CAUSES; i++) {
		ck_assert_str_ne(busy_cause_text(i), "");
		for (k = 0; k < i; k++) {
			ck_assert_str_ne(busy_cause_name(i),
			    busy_cause_name(k));
			ck_assert_str_ne(busy_cause_text(i),
			    busy_cause_text(k));
		}
	}
}

TEST(each_is_counted_by_itself)
{
	uint64_t before[BUSY_CAUSES], after[BUSY_CAUSES];
	size_t i, k;

	for (i = 0; i < BUSY_CAUSES; i++) {
		busy_cause_counts(before);
		ck_assert_int_eq(busy_cause_count(i), REFD_BUSY);
		busy_cause_counts(after);
		for (k = 0; k < BUSY_CAUSES; k++)
			ck_assert_uint_eq(after[k], before[k] + (k == i));
	}
}
