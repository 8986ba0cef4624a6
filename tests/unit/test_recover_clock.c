/*
 * Proves that a wrong clock costs no acknowledged update. A ref can have a time
 * in the future: the clock was ahead when the ref was written, or a tool set
 * the time. After a power loss the file system can show such a ref again, and
 * recovery must not take the ref for a later write. This holds for a kill and a
 * power loss at every change of the disk.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
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

/* A tool sets the time of the ref twice, and the disk has only the first time.
 * So the record of the update has an mtime that the disk never saw. */
static void set_times(const char *path)
{
	wr_ok("y=1"); /* the first update syncs all */
	scripted_git_writes(w, path, FIVES);
	memfs_set_mtime(w->fs, path, HOUR_NS);
	scripted_sync(w);
	memfs_set_mtime(w->fs, path, 2 * HOUR_NS);
}

START_TEST(a_move_of_a_ref_with_a_set_time)
{
	set_times(REF "x");
	wr_ok("x=2:5");
	lose_power();
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_log_count(w, "x", '5', '2'), 1);
}
END_TEST

START_TEST(a_deletion_of_a_ref_with_a_set_time)
{
	set_times(REF "x");
	wr_ok("-x:5");
	lose_power();
	ck_assert_int_eq(world_ref(w, "x"), '0');
}
END_TEST

/* A later write is one, whatever time a tool gives it. */
START_TEST(a_later_write_with_a_set_time_stays)
{
	wr_ok("x=2");
	scripted_sync(w);
	scripted_git_writes(w, REF "x", ONES);
	memfs_set_mtime(w->fs, REF "x", HOUR_NS);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}
END_TEST

/* The file system has whole seconds, as ext4 with inodes of 128 bytes. */
START_TEST(a_later_write_in_the_same_second_stays)
{
	memfs_set_tick(w->fs, INT64_C(1000000000));
	wr_ok("x=2");
	scripted_sync(w);
	memfs_write(w->fs, REF "x", ONES);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}
END_TEST

START_TEST(a_former_value_of_the_same_second_is_none)
{
	memfs_set_tick(w->fs, INT64_C(1000000000));
	wr_ok("x=1");
	scripted_sync(w);
	wr_ok("x=2:1");
	lose_power();
	ck_assert_int_eq(world_ref(w, "x"), '2');
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

/* git deletes f, and the new packed-refs is lost. No record knows the value of
 * the file that comes back. In the second run a tool has set its time. */
START_TEST(a_packed_refs_of_before_returns)
{
	const char header[] = "# pack-refs with: peeled fully-peeled sorted \n";
	char text[256];

	snprintf(text, sizeof(text), "%s%.40s refs/heads/f\n", header, FIVES);
	memfs_write(w->fs, WORLD_REPO "/packed-refs", text);
	if (_i == 1)
		memfs_set_mtime(w->fs, WORLD_REPO "/packed-refs", HOUR_NS);
	wr_ok("y=1");
	scripted_sync(w);
	scripted_git_writes(w, WORLD_REPO "/packed-refs", header);
	wr_ok("f=2:0");
	lose_power();
	ck_assert_int_eq(world_ref(w, "f"), '2');
	ck_assert_uint_eq(w->found[STORE_LEFT], 0);
}
END_TEST

/* ---- stopped anywhere ---- */

/* Refs x, y and z with 5, written by git or by refd while the clock was an hour
 * ahead. Then x moves, and in the other transaction x moves on, y goes and z
 * moves. */
struct ahead {
	struct world *w;
	struct scripted_txn h[2];
	bool is_ok[2]; /* as it was answered */
	bool of_refd, is_atomic;
};

static const char *const specs[] = { "x=2:5", "x=3:2;-y:5;z=3:5" };

static void *set_up_ahead(struct memfs *fs, void *arg)
{
	const int kind = *(const int *)arg;
	struct ahead *s = calloc(1, sizeof(*s));

	s->of_refd = kind % 2 == 1;
	s->is_atomic = kind / 2 == 1;
	s->w = world_new(fs, true);
	ck_assert_int_eq(world_start(s->w), 0);
	memfs_step_clock(fs, HOUR_NS);
	if (s->of_refd) {
		world_done(s->w, world_apply(s->w, "x=5;y=5;z=5", false));
	} else {
		scripted_git_writes(s->w, REF "x", FIVES);
		scripted_git_writes(s->w, REF "y", FIVES);
		scripted_git_writes(s->w, REF "z", FIVES);
	}
	memfs_step_clock(fs, -HOUR_NS);
	scripted_sync(s->w);
	return s;
}

static int move_ahead(void *state)
{
	struct ahead *s = state;
	struct txn *txn;
	size_t i, k;

	for (i = 0; i < 2; i++) {
		txn = world_apply(s->w, specs[i], s->is_atomic);
		if (txn == NULL)
			return -EIO;
		s->h[i] =
		    (struct scripted_txn){ .w = s->w, .txid = txn->req.txid };
		s->is_ok[i] = true;
		for (k = 0; k < txn->nr_updates; k++)
			s->is_ok[i] &= txn->updates[k].status == REFD_OK;
		world_done(s->w, txn);
	}
	return 0;
}

static int start_again(void *state)
{
	struct ahead *s = state;

	world_crash(s->w);
	return world_start(s->w);
}

static bool is_ok(const struct ahead *s, int txn, uint32_t index)
{
	return s->h[txn].w != NULL &&
	    scripted_status(&s->h[txn], index) == REFD_OK;
}

static const char *check_ahead(void *state, const struct sweep_now *now)
{
	struct ahead *s = state;
	const bool first = is_ok(s, 0, 0), x = is_ok(s, 1, 0),
		   y = is_ok(s, 1, 1), z = is_ok(s, 1, 2);

	if ((s->is_ok[0] && !first) || (s->is_ok[1] && !(x && y && z)))
		return "an acknowledged update is missing";
	if (!now->was_hit && !(s->is_ok[0] && s->is_ok[1]))
		return "nothing failed, and not all is ok";
	if (s->is_atomic && (x != y || y != z))
		return "an atomic transaction is torn";
	if (world_ref(s->w, "x") !=
		(x            ? '3' :
			first ? '2' :
				'5') ||
	    world_ref(s->w, "y") != (y ? '0' : '5') ||
	    world_ref(s->w, "z") != (z ? '3' : '5'))
		return "the answer by id and the disk differ";
	if (s->w->found[STORE_LEFT] > 0)
		return "a ref is left to a later writer";
	return world_litter(s->w);
}

static void tear_down_ahead(void *state)
{
	struct ahead *s = state;

	world_free(s->w);
	free(s);
}

START_TEST(stopped_anywhere)
{
	struct sweep_report report = { 0 };
	int kind = _i / 2;
	struct sweep s = { .name = "clock",
		.arg = &kind,
		.setup = set_up_ahead,
		.run = move_ahead,
		.recover = start_again,
		.check = check_ahead,
		.done = tear_down_ahead,
		.choices = 3 };
	bool ok = _i % 2 == 0 ? sweep_crash(&s, &report) :
				sweep_power_loss(&s, &report);

	ck_assert_msg(ok, "%s", report.text);
	ck_assert_uint_gt(report.points, 40);
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
	tcase_add_test(tc, a_move_of_a_ref_with_a_set_time);
	tcase_add_test(tc, a_deletion_of_a_ref_with_a_set_time);
	tcase_add_test(tc, a_later_write_with_a_set_time_stays);
	tcase_add_test(tc, a_later_write_in_the_same_second_stays);
	tcase_add_test(tc, a_former_value_of_the_same_second_is_none);
	tcase_add_test(tc, a_value_of_refd_of_the_future);
	tcase_add_loop_test(tc, a_packed_refs_of_before_returns, 0, 2);
	tcase_add_test(tc, the_old_value_written_anew_stays);
	suite_add_tcase(suite, tc);
	tc = tcase_create("stopped");
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, stopped_anywhere, 0, 8);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
