/*
 * Proves that the load of one client delays no other client. Repositories and
 * transactions take turns. A large push leaves a committer free. Large atomic
 * transactions do not starve. Ten thousand updates wait for one ref. A long
 * answer goes out in parts, with short answers in between. A hundred thousand
 * refs cost linear time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static void setup_wide(void)
{
	static const struct rig_config cfg = { .committers = 2,
		.batch_refs = 1000,
		.max_bytes = 64 * 1024 * 1024,
		.large = true };

	rig_setup(&cfg);
}

/* ---- fairness ---- */

static struct suite_case wide = { .name = "batches of a thousand",
	.setup = setup_wide,
	.teardown = rig_teardown,
	.seconds = 60 };
static struct suite_case committers = { .name = "committers",
	.setup = rig_setup_committers,
	.teardown = rig_teardown };

CASE(.name = "turns", .setup = rig_setup_one_committer,
    .teardown = rig_teardown);

/* Two clients wait for a large answer, and the first client hangs up in the
 * middle. A second large answer waits for the end, a small answer does not. */
TEST(test_long_answers_go_in_parts, .in = &wide)
{
	struct rig_client gone = { 0 }, stays = { 0 };
	struct rig_ask *large, *joined, *small, *second;
	const char **names = rig_names("refs/heads/", 2100);
	struct rig_txn t = { .names = names,
		.nr = 2100,
		.atomic = true,
		.id = 7,
		.client = &gone };
	struct rig_txn one = { RIG_NAMES("refs/x"), .repo = 2 };

	large = rig_go(&t);
	t.client = &stays;
	joined = rig_submit(&t);
	t.repo = 1;
	t.id = 8;
	second = rig_go(&t);
	rig_apply(rig_batches);
	rig_back(rig_batches);
	rig_apply(rig_batches);
	rig_back(rig_batches);
	while (large->nr_parts == 0)
		scheduler_run(rig_scheduler, rig_now, rig_wall_ms);
	ck_assert_uint_eq(large->nr_parts, 1);
	ck_assert_uint_eq(second->nr_parts, 0);
	small = rig_submit(&one);
	rig_forget(&gone);
	scheduler_run(rig_scheduler, rig_now, rig_wall_ms);
	ck_assert_uint_eq(joined->nr_answers, 0);
	rig_run();
	ck_assert_uint_eq(large->nr_answers, 0);
	ck_assert_uint_eq(joined->nr, 2100);
	ck_assert_uint_eq(joined->nr_parts, 5);
	ck_assert_uint_eq(second->nr, 2100);
	ck_assert_int_eq(second->outcome, REFD_COMMITTED);
	rig_admit_all();
	rig_back_all();
	ck_assert_uint_eq(small->nr_answers, 1);
	rig_names_free(names, 2100);
}

TEST(test_large_push_holds_up_nobody)
{
	struct rig_ask *large = rig_go_many(0, false, "refs/heads/", 500),
		       *small;
	struct rig_txn t = { RIG_NAMES("refs/heads/a") };
	unsigned i;

	/* Updates of another repository and of this repository: in the next
	 * batch. */
	for (i = 0; i < 8; i++) {
		t.repo = i % 2;
		t.names = &(const char *){ i % 2 ? "refs/x" : "refs/y" };
		small = rig_go(&t);
		ck_assert_ptr_null(rig_batches->next);
		rig_back_all();
		ck_assert_ptr_nonnull(rig_find(rig_batches, t.names[0]));
		rig_back_all();
		ck_assert_uint_eq(small->nr_answers, 1);
		ck_assert_uint_eq(large->nr_answers, 0);
	}
}

TEST(test_later_goes_first_but_once)
{
	struct rig_ask *large = rig_go_many(0, false, "refs/heads/", 500),
		       *small;
	size_t i;

	for (i = 2; i < 10; i++)
		rig_batches->slices[0].updates[i]->again = TXN_AGAIN_LATER;
	rig_back_all();
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	small = rig_go_one("refs/x");
	rig_back_all();
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/x"));
	rig_back_all();
	ck_assert_uint_eq(small->nr_answers, 1);
	ck_assert_uint_eq(large->nr_answers, 0);
}

TEST(test_many_small_of_one_repository)
{
	struct rig_txn t = { .repo = 1, RIG_NAMES("refs/x") };
	char name[32];
	size_t i;

	rig_go_one("refs/x");
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "refs/heads/%zu", i);
		rig_go_one(name);
	}
	rig_go(&t);
	t.repo = 2;
	rig_go(&t);
	rig_back_all();
	/* Behind a hundred updates of another repository, but the next in
	 * turn. */
	ck_assert_uint_eq(rig_count(rig_batches), 3);
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/x"));
	ck_assert_str_eq(rig_batches->slices[2].txn->req.git_dir, "2");
}

TEST(test_large_push_leaves_a_committer, .in = &committers)
{
	struct rig_ask *large = rig_go_many(0, false, "refs/heads/", 500);

	ck_assert_uint_eq(rig_count(rig_batches), 10);
	ck_assert_ptr_null(rig_batches->next);
	rig_go_one("refs/x");
	ck_assert_ptr_nonnull(rig_find(rig_batches->next, "refs/x"));
	ck_assert_uint_eq(large->nr_answers, 0);
}

/* If the store wants a transaction alone, its repository's later updates go
 * alone as well. Other repositories go on together. */
TEST(test_a_repository_goes_alone)
{
	struct rig_txn large = { .repo = 7, RIG_NAMES("refs/large") };
	struct rig_txn t = { .repo = 1, RIG_NAMES("refs/x") };
	struct rig_ask *ask, *first;
	unsigned i;

	rig_go_one("refs/y");
	first = rig_go(&t);
	ask = rig_go(&large);
	rig_back_all();
	ck_assert_uint_eq(rig_batches->nr_slices, 2);
	rig_give_back("refs/large", TXN_AGAIN_ALONE);
	rig_back_all();
	ck_assert_uint_eq(first->nr_answers, 1);
	ck_assert_ptr_null(rig_batches);
	rig_go_one("refs/y");
	for (i = 2; i < 5; i++) {
		t.repo = i;
		rig_go(&t);
	}
	rig_pass(10 * RIG_MS);
	rig_back_all();
	ck_assert_uint_eq(rig_batches->nr_slices, 3);
	ck_assert_ptr_null(rig_find(rig_batches, "refs/large"));
	rig_back_all();
	ck_assert_uint_eq(rig_batches->nr_slices, 1);
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/large"));
	t.repo = 2;
	rig_go(&t);
	rig_back_all();
	ck_assert_uint_eq(ask->nr_answers, 1);
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	rig_back_all();
}

TEST(test_repositories_in_turn)
{
	struct rig_ask *asks[8];
	unsigned seen[16] = { 0 }, i, k;

	/* Fifteen repositories share batches of ten. */
	rig_go_one("refs/heads/x");
	for (i = 0; i < 15; i++) {
		struct rig_ask *ask = rig_go_many(i, false, "refs/heads/", 20);

		if (i < 8)
			asks[i] = ask;
	}
	for (k = 0; k < 15; k++) {
		rig_back_all();
		for (i = 0; i < rig_batches->nr_slices; i++)
			seen[strtoul(rig_batches->slices[i].txn->req.git_dir,
			    NULL, 10)]++;
	}
	for (i = 0; i < 15; i++) {
		ck_assert_uint_ge(seen[i], 9);
		ck_assert_uint_le(seen[i], 11);
	}
	ck_assert_uint_eq(asks[0]->nr_answers, 0);
}

/* Both repositories already have half of the first batch. */
TEST(test_two_repositories_share_a_batch)
{
	rig_go_one("refs/heads/x");
	rig_go_many(1, false, "refs/heads/", 20);
	rig_go_many(2, false, "refs/heads/", 20);
	rig_back_all();
	ck_assert_uint_eq(rig_batches->nr_slices, 2);
}

TEST(test_ten_thousand_on_one_ref_hold_up_nobody, .in = &wide)
{
	struct rig_ask *other;
	size_t i;

	for (i = 0; i < 10000; i++)
		rig_submit(&(struct rig_txn){ RIG_NAMES("refs/heads/hot") });
	rig_admit_all();
	other = rig_go_one("refs/heads/b");
	ck_assert_ptr_nonnull(rig_find(rig_batches->next, "refs/heads/b"));
	rig_back_all();
	ck_assert_uint_eq(other->nr_answers, 1);
	ck_assert_uint_eq(rig_count(rig_batches), 1);
}

TEST(test_large_push_arrives_in_pieces, .in = &wide)
{
	const char **names = rig_names("refs/heads/", 100000);
	struct rig_txn large = { .names = names, .nr = 100000 };
	struct rig_txn small = { .repo = 1, RIG_NAMES("refs/x") };

	rig_submit(&large);
	rig_admit_one(rig_admissions);
	rig_submit(&small);
	rig_admit_one(rig_admissions);
	/* A call of the loop queues only a part of the transaction. */
	ck_assert(
	    scheduler_run(rig_scheduler, rig_now, rig_wall_ms) <= rig_now);
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/x"));
	rig_names_free(names, 100000);
	rig_run();
}

TEST(test_oversize_atomic_is_not_starved)
{
	struct rig_ask *atomic;
	char name[32];
	size_t i;

	rig_go_one("refs/x");
	for (i = 0; i < 40; i++) {
		struct rig_txn t = { .repo = 2 + (unsigned)i % 2,
			.names = (const char *const[]){ name },
			.nr = 1 };

		snprintf(name, sizeof(name), "refs/heads/%zu", i);
		rig_go(&t);
	}
	atomic = rig_go_many(1, true, "refs/heads/", 25);
	rig_back_all();
	/* Other transactions came first and have more left, but the atomic one
	 * is next. */
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	rig_back_all();
	ck_assert_uint_eq(rig_count(rig_batches), 25);
	rig_back_all();
	ck_assert_int_eq(atomic->outcome, REFD_COMMITTED);
}

/* ---- with batches of a thousand ---- */

TEST(test_later_goes_first, .in = &wide)
{
	struct rig_ask *ask = rig_go_many(0, false, "refs/heads/", 1000);
	size_t i;

	rig_go_many(1, false, "refs/heads/", 20000);
	/* The store had time for the first four hundred. */
	for (i = 400; i < 1000; i++)
		rig_batches->slices[0].updates[i]->again = TXN_AGAIN_LATER;
	rig_find(rig_batches->next, "refs/heads/7")->again = TXN_AGAIN_LATER;
	rig_apply(rig_batches);
	rig_back(rig_batches);
	rig_run();
	ck_assert_ptr_eq(rig_batches->next->slices[0].txn, ask->txn);
	ck_assert_uint_eq(rig_count(rig_batches->next), 400);
	while (ask->nr_answers == 0)
		rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	/* Batches grow again while the store has time for all updates. */
	for (i = 0; i < 16; i++)
		rig_back_all();
	ck_assert_uint_eq(rig_count(rig_batches), 1000);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cost_of(size_t nr, bool atomic)
{
	const char **names = rig_names("refs/heads/topic/", nr);
	struct rig_txn t = { .atomic = atomic, .names = names, .nr = nr };
	struct rig_ask *ask = rig_submit(&t);
	double start = seconds();
	uint64_t batches = rig_nr_batches;

	rig_admit_all();
	while (ask->nr_answers == 0)
		rig_back_all();
	start = seconds() - start;
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	ck_assert_uint_eq(ask->nr, nr);
	ck_assert_uint_eq(rig_nr_batches - batches,
	    atomic ? 1 : (nr + 999) / 1000);
	rig_names_free(names, nr);
	return start;
}

/* Ten times the refs cost ten times the time. A step for each pair of refs
 * would be ten thousand million steps, which take seconds. Other programs add
 * less than one second, and the least of a few tries counts. */
TEST(test_hundred_thousand_refs_cost_linear_time, .times = 2, .in = &wide)
{
	double small, large, again;
	int tries;

	cost_of(10000, _i);
	small = cost_of(10000, _i);
	large = cost_of(100000, _i);
	for (tries = 0; tries < 5 && large > 40 * small + 1; tries++) {
		again = cost_of(100000, _i);
		large = again < large ? again : large;
	}
	ck_assert_msg(large <= 40 * small + 1,
	    "%f s for 10,000, %f s for ten "
	    "times as many",
	    small, large);
}

TEST(test_hundred_thousand_end_at_once, .times = 2, .in = &wide)
{
	struct rig_ask *ask;
	double start;

	rig_go_one("refs/heads"); /* conflicts with all of them */
	ask = rig_go_many(0, _i, "refs/heads/", 100000);
	start = seconds();
	rig_pass(30000 * RIG_MS);
	ck_assert_int_eq(ask->statuses[99999], REFD_DEADLINE);
	ck_assert_double_lt(seconds() - start, 5);
}

TEST(test_what_the_store_does_not_take_gathers, .in = &committers)
{
	rig_go_one("refs/heads/a");
	ck_assert_uint_eq(rig_nr_batches, 1);
	rig_takes = false;
	rig_go_one("refs/heads/b");
	rig_go_one("refs/heads/c");
	rig_go_one("refs/heads/d");
	ck_assert_uint_eq(rig_nr_batches, 1);
	/* The store is not asked again before it calls back. */
	ck_assert_int_gt(rig_next, rig_now + 1000 * RIG_MS);
	rig_takes = true;
	rig_run();
	ck_assert_uint_eq(rig_nr_batches, 2);
	ck_assert_uint_eq(rig_count(rig_batches->next), 3);
	rig_back_all();
}

/* The store takes the question for a waiting batch, and hurries. */
TEST(test_the_store_is_asked_with_a_batch, .in = &committers)
{
	unsigned nr;

	rig_run();
	ck_assert_uint_eq(rig_nr_asked, 0);
	rig_go_one("refs/heads/a");
	nr = rig_nr_asked;
	ck_assert_uint_gt(nr, 0);
	rig_run();
	ck_assert_uint_eq(rig_nr_asked, nr);
	rig_takes = false;
	rig_go_one("refs/heads/b");
	ck_assert_uint_gt(rig_nr_asked, nr);
	rig_takes = true;
	rig_run();
	rig_back_all();
}
