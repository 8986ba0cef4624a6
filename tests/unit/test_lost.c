/*
 * Proves that recovery saves and reports malformed files before it replaces
 * them, under a name that shows the ref. The number of saved files is limited.
 * A ref is redone also if its old file could not be saved.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/lost.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define REF     WORLD_REPO "/refs/heads/a/x"
#define LOST    WORLD_REPO "/refd/lost"
#define ONES    "3131313131313131313131313131313131313131\n"
#define GARBAGE "ref: \n\n and more of it"

static unsigned count_lost(void)
{
	const struct sys *sys = memfs_other(w->fs);
	struct sys_dirent entry;
	struct sys_dir *dir;
	unsigned nr = 0;

	if (SYS(sys, dir_open, AT_FDCWD, LOST, &dir) < 0)
		return 0;
	while (SYS(sys, dir_next, dir, &entry) > 0)
		nr++;
	SYS(sys, dir_close, dir);
	return nr;
}

START_TEST(an_empty_ref_is_kept)
{
	const char *name;

	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	ck_assert(memfs_holds(w->fs, REF, ""));
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_holds(w->fs, REF, ONES));
	ck_assert(memfs_holds(w->fs, w->evidence, ""));
	name = strrchr(w->evidence, '/');
	ck_assert(strncmp(w->evidence, LOST "/", strlen(LOST "/")) == 0);
	ck_assert_str_eq(name + strlen(name) - strlen("-refs%2Fheads%2Fa%2Fx"),
	    "-refs%2Fheads%2Fa%2Fx");
	/* A second start has nothing to report. */
	ck_assert_int_eq(scripted_power_loss(w, MEMFS_DATA_NONE, 1000), 0);
	ck_assert_uint_eq(count_lost(), 1);
}
END_TEST

START_TEST(a_broken_ref_is_kept)
{
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, GARBAGE);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_holds(w->fs, REF, ONES));
	ck_assert(memfs_holds(w->fs, w->evidence, GARBAGE));
}
END_TEST

START_TEST(what_is_deleted_is_kept)
{
	wr_ok("a/x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("-a/x");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, GARBAGE);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(!memfs_exists(w->fs, REF));
	ck_assert(memfs_holds(w->fs, w->evidence, GARBAGE));
}
END_TEST

START_TEST(an_older_value_is_no_evidence)
{
	wr_ok("a/x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("a/x=2");
	ck_assert_int_eq(scripted_power_loss(w, MEMFS_DATA_NONE, 0), 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	ck_assert_uint_eq(count_lost(), 0);
}
END_TEST

START_TEST(two_of_a_second_have_two_names)
{
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	ck_assert_int_eq(world_start(w), 0);
	wr_ok("a/x=2");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, "");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(count_lost(), 2);
}
END_TEST

START_TEST(there_is_an_end_to_it)
{
	char path[128], *big = calloc(1, LOST_BYTES + 2);
	int i;

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', LOST_BYTES + 1);
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, big);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	ck_assert_uint_eq(count_lost(), 0);
	free(big);
	for (i = 0; i < LOST_FILES; i++) {
		snprintf(path, sizeof(path), LOST "/%d", i);
		memfs_write(w->fs, path, "");
	}
	wr_ok("a/x=2");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, "");
	memfs_write(w->fs, WORLD_REPO "/packed-refs", "garbage\n");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_int_eq(world_ref(w, "a/x"), '2');
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	/* Except packed-refs: this file may have the only copy of many refs. */
	ck_assert_str_eq(w->evidence, LOST "/packed-refs");
	ck_assert(memfs_holds(w->fs, w->evidence, "garbage\n"));
	ck_assert_uint_eq(count_lost(), LOST_FILES + 1);
}
END_TEST

START_TEST(what_cannot_be_kept_is_redone)
{
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, LOST, "no directory\n");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_holds(w->fs, REF, ONES));
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	ck_assert_str_eq(w->evidence, "");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lost");
	TCase *tc = tcase_create("lost");

	tcase_add_checked_fixture(tc, wr_setup_apart, wr_teardown);
	tcase_add_test(tc, an_empty_ref_is_kept);
	tcase_add_test(tc, a_broken_ref_is_kept);
	tcase_add_test(tc, what_is_deleted_is_kept);
	tcase_add_test(tc, an_older_value_is_no_evidence);
	tcase_add_test(tc, two_of_a_second_have_two_names);
	tcase_add_test(tc, there_is_an_end_to_it);
	tcase_add_test(tc, what_cannot_be_kept_is_redone);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
