/*
 * Proves that recovery gives up no acknowledged update for files in the way.
 * Git can leave a lock below the name of a ref, when it prunes a packed ref
 * that is deleted meanwhile. After a power loss this lock stands in the way of
 * a file. A directory in refd/stage/ is no hindrance.
 */
#include <check.h>

#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define BELOW WORLD_REPO "/refs/heads/d"

static void lose_the_file(void)
{
	wr_ok("d=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_mkdirs(w->fs, BELOW "/e");
}

START_TEST(a_lock_below_the_name_defers)
{
	lose_the_file();
	memfs_write(w->fs, BELOW "/e/x.lock", "");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_DROPPED], 0);
	wr_unlink(BELOW "/e/x.lock");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "d"), '1');
}
END_TEST

/* The git with the lock lives, and makes its ref. */
START_TEST(a_ref_below_the_name_aborts)
{
	lose_the_file();
	memfs_write(w->fs, BELOW "/e/x.lock", "");
	ck_assert_int_eq(world_start(w), 0);
	wr_rename(BELOW "/e/x.lock", BELOW "/e/x");
	memfs_write(w->fs, BELOW "/e/x",
	    "3232323232323232323232323232323232323232\n");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_uint_eq(w->found[STORE_DROPPED], 1);
	ck_assert_int_eq(world_ref(w, "d/e/x"), '2');
}
END_TEST

START_TEST(a_directory_in_stage_stays)
{
	memfs_hide_types(w->fs, _i == 1);
	wr_ok("d=1");
	memfs_mkdirs(w->fs, WORLD_REPO "/refd/stage/0000000000000001.0");
	memfs_mkdirs(w->fs, WORLD_REPO "/refd/stage/more");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_mkdirs(w->fs, WORLD_REPO "/refd/stage/more");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "d"), '1');
	ck_assert(memfs_exists(w->fs, WORLD_REPO "/refd/stage/more"));
	wr_ok("d=2:1");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recover_blocked");
	TCase *tc = tcase_create("recover_blocked");

	tcase_add_checked_fixture(tc, wr_setup_apart, wr_teardown);
	tcase_add_test(tc, a_lock_below_the_name_defers);
	tcase_add_test(tc, a_ref_below_the_name_aborts);
	tcase_add_loop_test(tc, a_directory_in_stage_stays, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
