/*
 * Proves that a wrong clock costs no acknowledged update. A ref can have a time
 * in the future: the clock was ahead when the ref was written, or a tool set
 * the time. After a power loss the file system can show such a ref again, and
 * recovery must not take the ref for a later write.
 */
#include <check.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define HOUR_NS INT64_C(3600000000000)
#define REF     WORLD_REPO "/refs/heads/"
#define FIVES   "3535353535353535353535353535353535353535\n"
#define ONES    "3131313131313131313131313131313131313131\n"

/* git writes NAME while the clock is an hour ahead, and the disk has it. */
static void write_in_the_future(const char *path, const char *text)
{
	memfs_step_clock(w->fs, HOUR_NS);
	scripted_git_writes(w, path, text);
	memfs_step_clock(w->fs, -HOUR_NS);
	scripted_sync(w);
}

static void lose_power(void)
{
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_LEFT], 0);
	wr_expect_locks("");
}

START_TEST(a_move_of_a_ref_of_the_future)
{
	write_in_the_future(REF "x", FIVES);
	wr_ok("x=2:5");
	lose_power();
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_log_count(w, "x", '5', '2'), 1);
}
END_TEST

START_TEST(a_deletion_of_a_ref_of_the_future)
{
	write_in_the_future(REF "x", FIVES);
	wr_ok("-x:5");
	lose_power();
	ck_assert_int_eq(world_ref(w, "x"), '0');
}
END_TEST

/* The disk shows the first of three values. */
START_TEST(several_moves_of_a_ref_of_the_future)
{
	write_in_the_future(REF "x", FIVES);
	wr_ok("x=2:5");
	wr_ok("x=3:2");
	lose_power();
	ck_assert_int_eq(world_ref(w, "x"), '3');
}
END_TEST

START_TEST(an_atomic_transaction_is_not_torn)
{
	struct txn *txn;

	write_in_the_future(REF "x", FIVES);
	wr_ok("y=1");
	scripted_sync(w);
	txn = world_apply(w, "x=2:5;y=2:1", true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	lose_power();
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_ref(w, "y"), '2');
}
END_TEST

/* refd wrote the value before the clock was set back. */
START_TEST(a_value_of_refd_of_the_future)
{
	memfs_step_clock(w->fs, HOUR_NS);
	wr_ok("x=1");
	memfs_step_clock(w->fs, -HOUR_NS);
	scripted_sync(w);
	wr_ok("x=2:1");
	lose_power();
	ck_assert_int_eq(world_ref(w, "x"), '2');
}
END_TEST

/* The time tells a later write of the same value from the replaced file. */
START_TEST(the_old_value_written_anew_stays)
{
	wr_ok("x=1");
	scripted_sync(w);
	wr_ok("x=2:1");
	scripted_git_writes(w, REF "x", ONES);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recover_clock");
	TCase *tc = tcase_create("recover_clock");

	tcase_add_checked_fixture(tc, wr_setup_apart, wr_teardown);
	tcase_add_test(tc, a_move_of_a_ref_of_the_future);
	tcase_add_test(tc, a_deletion_of_a_ref_of_the_future);
	tcase_add_test(tc, several_moves_of_a_ref_of_the_future);
	tcase_add_test(tc, an_atomic_transaction_is_not_torn);
	tcase_add_test(tc, a_value_of_refd_of_the_future);
	tcase_add_test(tc, the_old_value_written_anew_stays);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
