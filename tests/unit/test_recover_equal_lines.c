/*
 * Proves that recovery tells equal log lines of two updates apart, even if a
 * checkpoint has forgotten the record of the first update.
 */
#include <check.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define LOG WORLD_REPO "/logs/refs/heads/main"

static struct scripted_txn h;

static void setup(void)
{
	w = world_new(memfs_new(), true);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/main",
	    "3131313131313131313131313131313131313131\n");
	ck_assert_int_eq(world_start(w), 0);
	h = (struct scripted_txn){ .w = w, .publish = SCRIPTED_ALL };
}

static void move(char old, char new_c)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/main", old, new_c);

	ck_assert_int_eq(scripted_apply(&h, &m, 1), 0);
}

static void forget(void)
{
	scripted_sync(w);
	ck_assert_int_eq(world_checkpoint(w), 0);
}

/* The first and the third update are of the same second. */
static void move_to_and_fro(void)
{
	move('1', '2');
	move('2', '1');
	forget();
	w->seconds -= 2;
	move('1', '2');
}

START_TEST(a_lost_line_is_added)
{
	move_to_and_fro();
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "main"), '2');
	ck_assert_int_eq(scripted_log_lines(w, LOG, '1', '2'), 2);
}
END_TEST

START_TEST(a_line_that_is_there_is_not_added)
{
	move_to_and_fro();
	wr_power_loss_and_start(MEMFS_DATA_ALL, 1000);
	ck_assert_int_eq(scripted_log_lines(w, LOG, '1', '2'), 2);
}
END_TEST

/* The log since a deletion has no line of an older record. */
START_TEST(a_line_of_a_deleted_log_does_not_count)
{
	move('1', '2');
	forget();
	move('2', '0');
	move('0', '1');
	w->seconds -= 3;
	move('1', '2');
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(scripted_log_lines(w, LOG, '1', '2'), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recover_equal_lines");
	TCase *tc = tcase_create("recover_equal_lines");

	tcase_add_checked_fixture(tc, setup, wr_teardown);
	tcase_add_test(tc, a_lost_line_is_added);
	tcase_add_test(tc, a_line_that_is_there_is_not_added);
	tcase_add_test(tc, a_line_of_a_deleted_log_does_not_count);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
